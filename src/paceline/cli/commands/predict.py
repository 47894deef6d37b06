"""``paceline predict``: step time, throughput and memory of a plan on a cluster."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from paceline.cli.options import store_option
from paceline.cli.output import emit_json, json_option, next_line
from paceline.cli.plan_options import (
    Request,
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
@click.option("--chrome-trace", type=click.Path(path_type=Path), help="Write the step as JSON.")
@click.option("--timeline", type=click.Path(path_type=Path), help="Write the step as SVG.")
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
    from paceline.cli.local_predictions import predict_here
    from paceline.cli.trace_replay import predict_trace
    from paceline.predictor.prediction_json import prediction_json

    request = Request(options)
    if request.names_no_hardware and request.trace is not None:
        predict_trace(request, as_json)
        return
    if request.names_no_hardware:
        predict_here(request, store_path, as_json)
        return
    predictions = _predictions(request)
    _write(predictions[-1], chrome_trace, timeline)
    if as_json:
        emit_json("prediction", 1, {"predictions": [prediction_json(p) for p in predictions]})
        return
    if len(predictions) == 1:
        click.echo(str(predictions[0]))
    else:
        from paceline.cli.prediction_tables import prediction_table
        from paceline.report.terminal import print_table

        print_table(prediction_table(predictions))
        for note in dict.fromkeys(note for p in predictions for note in p.notes):
            click.echo(f"note: {note}")
    for path, how in ((chrome_trace, "ui.perfetto.dev opens"), (timeline, "a browser shows")):
        if path is not None:
            click.echo(f"{how} {path}")
    next_line(_whatif_line(options))


def _predictions(request: Request) -> "list[Prediction]":
    from paceline.predictor.predict import predict

    found = []
    for cluster in request.clusters():
        plan = request.plan(cluster.devices)
        workload = request.workload(plan.dp)
        found.append(predict(workload, cluster, plan, **request.measured()))
    return found


def _write(prediction: "Prediction", trace_path: Path | None, timeline: Path | None) -> None:
    from paceline.report.files import write_text

    if trace_path is not None:
        from paceline.step import chrome_trace

        write_text(trace_path, chrome_trace(prediction.step))
    if timeline is not None:
        from paceline.report.figures.drawing import draw, standalone
        from paceline.report.figures.gantt import gantt_info

        write_text(timeline, standalone(draw(gantt_info(prediction.step))))


def _whatif_line(options: dict[str, Any]) -> str:
    named = {"cluster": "cluster_name", "device": "device_name", "link": "link_name"}
    words = [f"--{option} {options[key]}" for option, key in named.items() if options[key]]
    for option, key in (("-j", "places"), ("--nodes", "nodes")):
        if options[key]:
            words.append(f"{option} {options[key].split(',')[-1]}")
    where = " ".join(words)
    model = (
        f"--model {options['model']}" if options["model"] else f"--trace {options['trace_name']}"
    )
    return f"paceline whatif {model} {where}"
