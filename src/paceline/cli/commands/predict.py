"""``paceline predict``: step time, throughput and memory of a plan on a cluster."""

from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from paceline.cli.next_steps import next_line, same_job
from paceline.cli.options import figure_option, out_option, places_given, store_option
from paceline.cli.output import emit_json, json_option, show, write_figure
from paceline.cli.plan_options import emit_option, job_options, training_options
from paceline.cli.say import say
from paceline.errors import InputError
from paceline.units import parse_share

if TYPE_CHECKING:
    from paceline.analyse.this_machine import HerePredictions
    from paceline.predictor.prediction import Prediction
    from paceline.predictor.target_efficiency import BandwidthNeeded
    from paceline.predictor.training_run import TrainingRun

EXAMPLE = """
\b
Examples:
  paceline predict --model resnet50 --batch 64 --cluster hkbu-v100-pcie -j 1x4,2x4,4x4,8x4
  paceline predict --model gpt3_175b --global-batch 1536 --cluster dgx-a100 -j 64x8 \\
      --tp 8 --pp 8 --micro-batch 2 --interleave 3 --recompute selective --sequence-parallel \\
      --unfused-attention --precision bf16
  paceline predict --model resnet50,vgg16 --batch 64 --cluster dgx-a100,dgx-h100 \\
      --link 100gbit,400gbit -j 4x8
  paceline predict --model resnet44 -j 1x2            (this machine, from its own launches)
  paceline predict --model net.py:make_model --input 32x3x224x224 --device a100_sxm_80gb
  paceline predict --model vgg16 --batch 32 --cluster hkbu-v100-pcie -j 4x4 --explain
  paceline predict --trace googlenet_k80 --nodes 2,8 --link eth_10g --overlap merged
  paceline predict --model llama3_70b --cluster p5.48xlarge -j 128x8 --tp 8 --pp 4 --zero 1 \\
      --global-batch 1024 --micro-batch 1 --precision bf16 --framework megatron-lm --tokens 15T
  paceline predict --model resnet50 --batch 64 --cluster hkbu-v100-pcie -j 8x4 \\
      --target-efficiency 85%
"""


@click.command(epilog=EXAMPLE)
@job_options
@out_option("--chrome-trace", "Write the step as JSON for ui.perfetto.dev.")
@figure_option("--timeline", "Draw the step")
@training_options
@emit_option
@click.option("--target-efficiency", help="Say which bandwidth an efficiency needs, as in 90%.")
@click.option("--explain", "explained", is_flag=True, help="Say what each cause adds to the step.")
@store_option
@json_option
def command(
    chrome_trace: Path | None,
    timeline: Path | None,
    explained: bool,
    target_efficiency: str | None,
    emit: str | None,
    store_path: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Predict step time, throughput and memory of training under a plan on a cluster.

    With several places (-j 1x4,2x4), models, clusters or links by commas a table compares them all.
    A Chrome trace or timeline shows the
    last. Without --cluster or --device the place is this machine: launches of the same job in
    the store are the evidence, else the machine's profile ('paceline probe', 'calibrate'). A
    trace without a cluster is replayed on nodes of the traced device joined by --link.

    --tokens or --epochs give days, device-hours, price and energy of a whole training, with
    failures and checkpoints. --target-efficiency says which bandwidth would be needed, --emit how
    a program is told the plan (of the last place).
    """
    answer = _answer(options, target_efficiency, store_path)
    last = answer.predictions[-1]
    _write(last, chrome_trace, timeline)
    if as_json:
        _emit(answer, emit)
        return
    _show(answer)
    if explained:
        _explain(last)
    if emit is not None:
        from paceline.report.tables.program_flags import flags_lines

        say("\n".join(flags_lines(last, emit)))
    for path, how in ((chrome_trace, "ui.perfetto.dev opens"), (timeline, "a browser shows")):
        if path is not None:
            say(f"{how} {path}")
    here = answer.here
    if here is None:
        next_line(same_job("whatif", **_last_place()))
    elif here.alone is None:
        next_line(same_job("measure", instrument="none,layers"))
    else:
        next_line(same_job("calibrate"), same_job("explain", study=here.alone.first.study))


@dataclass(frozen=True)
class _Answer:
    """Predictions, beside measurements where there are any, and what else was asked of them.

    ``target`` is an efficiency, and ``needed`` the bandwidth that it needs.
    """

    predictions: "list[Prediction]"
    here: "HerePredictions | None"
    runs: "list[TrainingRun]"
    target: float | None
    needed: "list[BandwidthNeeded] | None"


def _answer(options: dict[str, Any], target_efficiency: str | None, store: Path | None) -> _Answer:
    from paceline.api.predictions import bandwidth_for, predict
    from paceline.api.training import asks_for_training, split_training_words, training_of

    training, options = split_training_words(options)
    asks_training = asks_for_training(training)
    target = None if target_efficiency is None else parse_share(target_efficiency)
    places = places_given(options.pop("places"), options.pop("nodes"))
    here = None
    if options["cluster"] or options["device"] or options["trace"] is not None:
        predictions = [
            predict(**{**one, **place}) for one in _alternatives(options) for place in places
        ]
    else:
        from paceline.api.this_machine import predict_here

        asked = [(place["nodes"], place.get("processes", 1)) for place in places if place]
        named = {key: value for key, value in options.items() if key not in ("cluster", "device")}
        here = predict_here(places=asked, store=store, **named)
        predictions = [one.prediction for one in here.comparisons]
    priced = training.get("price")
    if priced is not None:
        predictions = [one.with_price(priced) for one in predictions]
    runs = [training_of(one, training) for one in predictions] if asks_training else []
    needed = None
    if target is not None:
        if here is not None:
            raise InputError("--target-efficiency is about a cluster", "name one with --cluster")
        last = _alternatives(options)[-1]
        needed = bandwidth_for(target_efficiency=target, **{**last, **places[-1]})
    return _Answer(predictions, here, runs, target, needed)


def _emit(answer: _Answer, program: str | None) -> None:
    """Everything that was asked for, as JSON."""
    from paceline.analyse.comparison import comparisons_json
    from paceline.predictor.prediction_json import prediction_json
    from paceline.report.tables.program_flags import flags_json
    from paceline.report.tables.training import bandwidth_json, training_json

    fields: dict[str, Any] = {
        "predictions": [
            {**prediction_json(one), **flags_json(one, program)} for one in answer.predictions
        ]
    }
    if answer.here is not None:
        fields["comparisons"] = comparisons_json(answer.here.comparisons)
    if answer.runs:
        fields["training"] = [training_json(run) for run in answer.runs]
    if answer.target is not None and answer.needed is not None:
        fields["bandwidth"] = bandwidth_json(answer.target, answer.needed)
    emit_json("prediction", 2, fields)


def _show(answer: _Answer) -> None:
    from paceline.report.tables.predictions import notes_of, prediction_parts

    here, predictions = answer.here, answer.predictions
    if here is None or here.alone is None:
        show(prediction_parts(predictions))
    else:
        from paceline.report.tables.comparisons import comparison_table

        show([comparison_table(here.alone, here.comparisons), *notes_of(predictions)])
    if answer.runs:
        from paceline.report.tables.training import training_parts

        show(training_parts(answer.runs))
    if answer.target is not None and answer.needed is not None:
        from paceline.report.tables.training import bandwidth_words

        say("\n".join(bandwidth_words(answer.target, answer.needed)))


def _alternatives(options: dict[str, Any]) -> list[dict[str, Any]]:
    """One set of options for each combination of the models, clusters and links given by commas."""
    several = {
        name: [part.strip() for part in options[name].split(",")]
        for name in ("model", "cluster", "link")
        if options.get(name) and "," in options[name]
    }
    chosen = (dict(zip(several, levels, strict=True)) for levels in product(*several.values()))
    return [{**options, **one} for one in chosen]


def _last_place() -> dict[str, str]:
    """The last of several places, models, clusters and links, for commands that look at one."""
    given = click.get_current_context().params
    several = ("places", "nodes", "model", "cluster", "link")
    return {
        key: given[key].split(",")[-1].strip()
        for key in several
        if given.get(key) and (key in several[:2] or "," in given[key])
    }


def _explain(prediction: "Prediction") -> None:
    from paceline.analyse.predicted_waterfall import predicted_waterfall
    from paceline.report.terminal_waterfall import print_waterfall

    words = (
        f"From one device to {prediction.devices}: {prediction.efficiency:.0%} of perfect scaling"
    )
    print_waterfall(predicted_waterfall(prediction), words, "predicted")


def _write(prediction: "Prediction", trace_path: Path | None, timeline: Path | None) -> None:
    if trace_path is not None:
        from paceline.report.files import write_text
        from paceline.step.chrome_trace import chrome_trace

        write_text(trace_path, chrome_trace(prediction.step))
    if timeline is not None:
        from paceline.report.figures.gantt import gantt_info

        write_figure(timeline, gantt_info(prediction.step))
