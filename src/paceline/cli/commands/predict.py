"""``paceline predict``: step time, throughput and memory of a plan on a cluster."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from paceline.cli.output import emit_json, json_option, next_line
from paceline.cli.plan_options import (
    Request,
    measured_options,
    place_options,
    plan_options,
    workload_options,
)

if TYPE_CHECKING:
    from paceline.predict import Prediction

EXAMPLE = """
\b
Examples:
  paceline predict --model resnet50 --batch 64 --cluster hkbu-v100-pcie -j 1x4,2x4,4x4,8x4
  paceline predict --model gpt3_175b --global-batch 1536 --cluster dgx-a100 -j 64x8 \\
      --tp 8 --pp 8 --micro-batch 2 --interleave 3 --recompute selective --sequence-parallel \\
      --unfused-attention --precision bf16
  paceline predict --model net.py:make_model --input 32x3x224x224 --device a100_sxm_80gb
  paceline predict --layers googlenet_k80 --cluster hkbu-v100-pcie -j 2x1,8x1 --overlap merged
"""


@click.command(epilog=EXAMPLE)
@workload_options
@place_options
@plan_options
@measured_options
@click.option("--trace", type=click.Path(path_type=Path), help="Write a Chrome trace (JSON).")
@click.option("--timeline", type=click.Path(path_type=Path), help="Write the step as SVG.")
@json_option
def command(trace: Path | None, timeline: Path | None, as_json: bool, **options: Any) -> None:
    """Predict step time, throughput and memory of training under a plan on a cluster.

    With several places (-j 1x4,2x4) a table compares them. A trace or timeline shows the last.
    """
    from paceline.predict.prediction_json import prediction_json

    predictions = _predictions(Request(options))
    _write(predictions[-1], trace, timeline)
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
    for path, how in ((trace, "ui.perfetto.dev opens"), (timeline, "a browser shows")):
        if path is not None:
            click.echo(f"{how} {path}")
    next_line(_whatif_line(options))


def _predictions(request: Request) -> "list[Prediction]":
    from paceline.predict import predict

    found = []
    for cluster in request.clusters():
        plan = request.plan(cluster.devices)
        workload = request.workload(plan.dp)
        found.append(predict(workload, cluster, plan, **request.measured()))
    return found


def _write(prediction: "Prediction", trace: Path | None, timeline: Path | None) -> None:
    from paceline.report.files import write_text

    if trace is not None:
        from paceline.step import chrome_trace

        write_text(trace, chrome_trace(prediction.step))
    if timeline is not None:
        from paceline.report.figures.drawing import draw, standalone
        from paceline.report.figures.gantt import gantt_info

        write_text(timeline, standalone(draw(gantt_info(prediction.step))))


def _whatif_line(options: dict[str, Any]) -> str:
    place = f"--cluster {options['cluster_name']}" if options["cluster_name"] else ""
    place = place or f"--device {options['device_name']}"
    last = (options["places"] or "").split(",")[-1]
    where = f"{place} -j {last}" if last else place
    model = (
        f"--model {options['model']}" if options["model"] else f"--layers {options['trace_name']}"
    )
    return f"paceline whatif {model} {where}"
