"""``paceline predict``: step time, throughput and memory of a plan on a cluster."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from paceline.cli.echo import echo
from paceline.cli.help_sections import SectionedCommand
from paceline.cli.knob_options import options_of
from paceline.cli.next_steps import next_line, same_job, single_values
from paceline.cli.options import figure_option, out_option, store_option
from paceline.cli.output import emit_json, json_option, show, write_figure
from paceline.errors import InputError
from paceline.spec.job_options import (
    EfficiencyOptions,
    EmitOptions,
    EvidenceOptions,
    JobArguments,
)
from paceline.spec.training_options import TrainingOptions
from paceline.units import plural

if TYPE_CHECKING:
    from paceline.calibration.local_prediction import LocalPredictions
    from paceline.predictor.prediction import Prediction
    from paceline.predictor.target_efficiency import NeededBandwidths
    from paceline.predictor.training_run import TrainingRun

EXAMPLE = """
\b
Examples:
  paceline predict --model resnet50 --batch 64 --cluster hkbu-v100-pcie -j 1x4,2x4,4x4,8x4
  paceline predict --model gpt3_175b --global-batch 1536 --cluster dgx-a100 -j 64x8 \\
      --tp 8 --pp 8 --micro-batch 2 --interleave 3 --recompute selective --sequence-parallel \\
      --no-fused-attention --precision bf16
  paceline predict --model resnet50,vgg16 --batch 64 --cluster dgx-a100,dgx-h100 \\
      --link 100gbit,400gbit -j 4x8
  paceline predict --model resnet44 -j 1x2            (this machine, from its own launches)
  paceline predict --model net.py:make_model --input 32x3x224x224 --device a100_sxm_80gb
  paceline predict --model vgg16 --batch 32 --cluster hkbu-v100-pcie -j 4x4 --explain
  paceline predict --trace googlenet_k80 --nodes 2,8 --link eth_10g --overlap merged
  paceline predict --model llama3_70b --cluster p5.48xlarge -j 128x8 --tp 8 --pp 4 --zero 1 \\
      --sequence-parallel --global-batch 1024 --micro-batch 1 --precision bf16 \\
      --framework megatron-lm --tokens 15T
  paceline predict --model resnet50 --batch 64 --cluster hkbu-v100-pcie -j 8x4 \\
      --target-efficiency 85%
"""


@click.command(cls=SectionedCommand, epilog=EXAMPLE)
@options_of(JobArguments, EvidenceOptions, TrainingOptions, EfficiencyOptions, EmitOptions)
@out_option("--chrome-trace", "Write the step as a Chrome trace for ui.perfetto.dev.")
@figure_option("--timeline", "Draw the timeline of the step")
@click.option("--explain", "explained", is_flag=True, help="Break the step time down by cause.")
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
    """Predict step time, throughput and memory of a plan on a cluster.

    Several topologies (-j 1x4,2x4), models, clusters or links, comma-separated, are compared in a
    table; --chrome-trace, --timeline and --emit use the last one. Without --cluster or --device
    the prediction is for this machine, based on launches of the same job in the store or on the
    machine profile ('paceline calibrate'). A --trace without a cluster is
    replayed on nodes of the traced device connected by --link.

    --tokens or --epochs predict time, device-hours, cost and energy of a complete training run,
    including failures and checkpoints.
    """
    answer = _answer(options, target_efficiency, store_path)
    last = answer.predictions[-1]
    flags: list[str] = []
    if emit is not None:  # raises before anything is printed or written
        from paceline.predictor.emit.emit_tables import flags_lines

        flags = flags_lines(last, emit)
    _write(last, chrome_trace, timeline)
    if as_json:
        _emit(answer, emit)
        return
    _show(answer)
    if explained:
        _explain(last)
    if flags:
        echo("\n".join(flags))
    for path, title in ((chrome_trace, "Chrome trace"), (timeline, "Timeline")):
        if path is not None:
            echo(f"{title}: {path}")
    here = answer.here
    if here is None and last.fits is False and options["model"] and not options["trace"]:
        next_line(_search_of(last))
    elif here is None:
        next_line(same_job("whatif", **single_values(-1)))
    elif here.alone is None:
        next_line(same_job("measure", instruments="none,layers"))
    else:
        next_line(same_job("calibrate"), same_job("explain", study=here.alone.first.study))


@dataclass(frozen=True)
class _Answer:
    """Predictions, with measurements of this machine if there are any.

    ``needed`` is the bandwidth that a scaling efficiency requires.
    """

    predictions: "list[Prediction]"
    here: "LocalPredictions | None"
    runs: "list[TrainingRun]"
    needed: "NeededBandwidths | None"


def _import_numpy_without_threads() -> None:
    """Import NumPy without the threads of OpenBLAS, which take 60 ms of CPU to start.

    Predictions multiply no large matrices. The variable is restored for child processes.
    """
    if "OPENBLAS_NUM_THREADS" not in os.environ:
        os.environ["OPENBLAS_NUM_THREADS"] = "1"
        import numpy  # noqa: F401

        del os.environ["OPENBLAS_NUM_THREADS"]


def _answer(options: dict[str, Any], target_efficiency: str | None, store: Path | None) -> _Answer:
    if options["cluster"] or options["device"]:
        _import_numpy_without_threads()
    from paceline.predictor.api import bandwidth_for, predict
    from paceline.predictor.prediction import Prediction
    from paceline.spec.training_options import (
        asks_for_training,
        split_training_options,
        training_of,
    )

    training, options = split_training_options(options)
    asks_training = asks_for_training(training)
    here = None
    elsewhere = ("cluster", "device", "trace", "evidence")
    if any(options[name] is not None for name in elsewhere):
        found = predict(**options)
        predictions = [found] if isinstance(found, Prediction) else list(found)
    else:
        here = _local(options, store)
        predictions = [one.prediction for one in here.comparisons]
    priced = training.get("price")
    if priced is not None:
        predictions = [one.with_price(priced) for one in predictions]
    runs = [training_of(one, training) for one in predictions] if asks_training else []
    needed = None
    if target_efficiency is not None:
        if here is not None:
            raise InputError("--target-efficiency requires a cluster", "add --cluster NAME")
        needed = bandwidth_for(target_efficiency=target_efficiency, **options)
    return _Answer(predictions, here, runs, needed)


def _local(options: dict[str, Any], store: Path | None) -> "LocalPredictions":
    """Predictions for this machine: one model, any number of topologies."""
    from paceline.calibration.local_prediction import predict_local
    from paceline.topology import parse_topology

    given = {name: value for name, value in options.items() if value not in (None, ())}
    nodes, topologies = given.pop("nodes", None), given.pop("topology", None)
    if nodes is not None and topologies is not None:
        raise InputError("-j and --nodes are mutually exclusive", "give one of them")
    counts = [nodes] if isinstance(nodes, int) else nodes or []
    texts = [topologies] if isinstance(topologies, str) else topologies or []
    grids = [(count, 1) for count in counts] + [parse_topology(text) for text in texts]
    given.setdefault("precision", "fp32")
    return predict_local(given.pop("model", None), grids, store=store, **given)


def _emit(answer: _Answer, program: str | None) -> None:
    from paceline.calibration.prediction_error import comparisons_json
    from paceline.predictor.emit.emit_tables import flags_json
    from paceline.predictor.prediction_json import prediction_json
    from paceline.predictor.training_run_tables import training_json

    fields: dict[str, Any] = {
        "predictions": [
            {**prediction_json(one), **flags_json(one, program)} for one in answer.predictions
        ]
    }
    if answer.here is not None:
        fields["comparisons"] = comparisons_json(answer.here.comparisons)
    if answer.runs:
        fields["training"] = [training_json(run) for run in answer.runs]
    if answer.needed is not None:
        fields["bandwidth"] = answer.needed.to_dict()
    emit_json("prediction", 2, fields)


def _show(answer: _Answer) -> None:
    from paceline.predictor.prediction_tables import notes_of, prediction_parts

    here, predictions = answer.here, answer.predictions
    if here is None or here.alone is None:
        show(prediction_parts(predictions))
    else:
        from paceline.calibration.calibration_tables import comparison_table

        show([comparison_table(here.alone, here.comparisons), *notes_of(predictions)])
    if answer.runs:
        from paceline.predictor.training_run_tables import training_parts

        show(training_parts(answer.runs))
    if answer.needed is not None:
        show(answer.needed.parts())


def _search_of(prediction: "Prediction") -> str:
    """The command that searches for plans that fit, for the same job."""
    drop = (*TrainingOptions.__annotations__, "emit", "batch")
    batch = prediction.samples_per_step
    return same_job("advise", drop=drop, **single_values(-1), global_batch=batch)


def _explain(prediction: "Prediction") -> None:
    from paceline.explanation.predicted_waterfall import predicted_waterfall
    from paceline.render.terminal_waterfall import print_waterfall

    devices = plural(prediction.devices, "device")
    title = f"Scaling from 1 device to {devices}: efficiency {prediction.efficiency:.0%}"
    print_waterfall(predicted_waterfall(prediction), title, "predicted")


def _write(prediction: "Prediction", trace_path: Path | None, timeline: Path | None) -> None:
    if trace_path is not None:
        from paceline.render.files import write_text
        from paceline.step.serialise import chrome_trace

        write_text(trace_path, chrome_trace(prediction.step))
    if timeline is not None:
        from paceline.render.figures.gantt import gantt_info

        write_figure(timeline, gantt_info(prediction.step))
