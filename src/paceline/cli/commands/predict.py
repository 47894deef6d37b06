"""``paceline predict``: step time, throughput and memory of a plan on a cluster."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from paceline.cli.next_steps import next_line, same_job
from paceline.cli.options import out_option, places_given, store_option
from paceline.cli.output import emit_json, json_option, show, warn, write_figure
from paceline.cli.plan_options import (
    measured_options,
    place_options,
    plan_options,
    workload_options,
)

if TYPE_CHECKING:
    from paceline.predictor.prediction import Prediction

EXAMPLE = """
\b
Examples:
  paceline predict --model resnet50 --batch 64 --cluster hkbu-v100-pcie -j 1x4,2x4,4x4,8x4
  paceline predict --model gpt3_175b --global-batch 1536 --cluster dgx-a100 -j 64x8 \\
      --tp 8 --pp 8 --micro-batch 2 --interleave 3 --recompute selective --sequence-parallel \\
      --unfused-attention --precision bf16
  paceline predict --model resnet44 -j 1x2            (this machine, from its own launches)
  paceline predict --model net.py:make_model --input 32x3x224x224 --device a100_sxm_80gb
  paceline predict --trace googlenet_k80 --nodes 2,8 --link eth_10g --overlap merged
"""


@click.command(epilog=EXAMPLE)
@workload_options
@place_options
@plan_options
@measured_options
@out_option("--chrome-trace", "Write the step as JSON for ui.perfetto.dev.")
@out_option("--timeline", "Write the step as SVG.")
@store_option
@json_option
def command(
    chrome_trace: Path | None,
    timeline: Path | None,
    store_path: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Predict step time, throughput and memory of training under a plan on a cluster.

    With several places (-j 1x4,2x4) a table compares them. A Chrome trace or timeline shows the
    last. Without --cluster or --device the place is this machine, and what is known of it are the
    launches of the same model in the store.
    """
    from paceline.api.predictions import predict

    places = places_given(options.pop("places"), options.pop("nodes"))
    if not (options["cluster"] or options["device"]):
        if options["trace"] is not None:
            _replay(places, options, as_json)
        else:
            _predict_here(places, options, store_path, as_json)
        return
    predictions = [predict(**{**options, **place}) for place in places]
    _write(predictions[-1], chrome_trace, timeline)
    if as_json:
        from paceline.predictor.prediction_json import prediction_json

        emit_json("prediction", 1, {"predictions": [prediction_json(p) for p in predictions]})
        return
    from paceline.report.tables.predictions import prediction_parts

    show(prediction_parts(predictions))
    for path, how in ((chrome_trace, "ui.perfetto.dev opens"), (timeline, "a browser shows")):
        if path is not None:
            click.echo(f"{how} {path}")
    next_line(same_job("whatif", **_last_place()))


def _last_place() -> dict[str, str]:
    """The last of several places, for commands that look at one."""
    given = click.get_current_context().params
    return {key: given[key].split(",")[-1] for key in ("places", "nodes") if given.get(key)}


def _write(prediction: "Prediction", trace_path: Path | None, timeline: Path | None) -> None:
    if trace_path is not None:
        from paceline.report.files import write_text
        from paceline.step import chrome_trace

        write_text(trace_path, chrome_trace(prediction.step))
    if timeline is not None:
        from paceline.report.figures.gantt import gantt_info

        write_figure(timeline, gantt_info(prediction.step))


def _predict_here(
    places: list[dict[str, int]], options: dict[str, Any], store: Path | None, as_json: bool
) -> None:
    from paceline.analyse.comparison import comparisons_json
    from paceline.api.this_machine import predict_here
    from paceline.report.study import comparison_table

    asked = [(place["nodes"], place.get("processes", 1)) for place in places if place]
    found = predict_here(options["model"], asked, link=options["link"], store=store)
    if as_json:
        emit_json("local_prediction", 1, {"comparisons": comparisons_json(found.comparisons)})
        return
    show([comparison_table(found.alone, found.comparisons)])
    next_line(same_job("calibrate"), same_job("explain", study=found.study))


def _replay(places: list[dict[str, int]], options: dict[str, Any], as_json: bool) -> None:
    from paceline.api.replaying import replay_trace
    from paceline.report.tables.predictions import replay_json, replay_table

    workers = [place["nodes"] * place.get("processes", 1) for place in places if place]
    replay = replay_trace(workers, **options)
    warn(f"warning: {warning}" for warning in replay.trace.warnings)
    if as_json:
        fields = {"trace": replay.trace.label, "link": replay.link.name}
        emit_json("replay", 1, {**fields, "replayed": replay_json(replay.replayed)})
        return
    label = replay.trace.label or options["trace"]
    how = f"{replay.synchronisation.policy}, {replay.framework}"
    show([replay_table(replay.replayed, f"{label} replayed on {replay.link.name}, {how}")])
    next_line(same_job("predict", overlap="one_message"))
