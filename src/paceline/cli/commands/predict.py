"""``paceline predict``: step time, throughput and memory of a plan on a cluster."""

from collections.abc import Sequence
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
    from paceline.analyse.comparison import Comparison
    from paceline.analyse.groups import LaunchGroup
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
    last. Without --cluster or --device the place is this machine: launches of the same job in
    the store are the evidence, else the machine's profile ('paceline probe', 'calibrate'). A
    trace without a cluster is replayed on nodes of the traced device joined by --link.
    """
    from paceline.analyse.comparison import comparisons_json
    from paceline.cli.local_predictions import predictions_here
    from paceline.predictor.prediction_json import prediction_json

    request = Request(options)
    comparisons: Sequence[Comparison] = ()
    alone = None
    if request.is_here:
        here = predictions_here(request, store_path)
        comparisons, alone = here.comparisons, here.alone
        predictions = [one.prediction for one in comparisons]
    else:
        predictions = _predictions(request)
    _write(predictions[-1], chrome_trace, timeline)
    if as_json:
        fields: dict[str, Any] = {"predictions": [prediction_json(p) for p in predictions]}
        if comparisons:
            fields["comparisons"] = comparisons_json(comparisons)
        emit_json("prediction", 2, fields)
        return
    _print(predictions, comparisons, alone)
    for path, how in ((chrome_trace, "ui.perfetto.dev opens"), (timeline, "a browser shows")):
        if path is not None:
            click.echo(f"{how} {path}")
    if alone is not None:
        next_line("paceline calibrate", f"paceline explain {alone.first.study}")
    elif request.is_here:
        next_line(f"paceline measure --model {options['model']} --instrument none,layers")
    else:
        next_line(_whatif_line(options))


def _print(
    predictions: "list[Prediction]",
    comparisons: "Sequence[Comparison]",
    alone: "LaunchGroup | None",
) -> None:
    """One place in full; several as a table; beside measurements where there are some."""
    from paceline.cli.prediction_tables import prediction_table
    from paceline.report.study import comparison_table
    from paceline.report.terminal import print_table

    if alone is not None:
        print_table(comparison_table(alone, comparisons))
    elif len(predictions) == 1:
        click.echo(str(predictions[0]))
        return
    else:
        print_table(prediction_table(predictions))
    for note in dict.fromkeys(note for p in predictions for note in p.notes):
        click.echo(f"note: {note}")


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
