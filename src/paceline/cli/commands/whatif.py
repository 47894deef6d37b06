"""``paceline whatif``: what faster resources or another plan would gain."""

from typing import Any

import click

from paceline.cli.output import emit_json, json_option, next_line
from paceline.cli.plan_options import (
    Request,
    measured_options,
    place_options,
    plan_options,
    workload_options,
)
from paceline.errors import InputError

EXAMPLE = """
\b
Examples:
  paceline whatif --model bert_large --batch 8 --seq 64 --cluster hkbu-v100-pcie -j 8x4
  paceline whatif --model gpt3_6.7b --batch 16 --precision bf16 --cluster dgx-a100 -j 8x8 \\
      --tp 8 --pp 4 --micro-batch 2
"""


@click.command(epilog=EXAMPLE)
@workload_options
@place_options
@plan_options
@measured_options
@json_option
def command(as_json: bool, **options: Any) -> None:
    """Say what a step would gain if a resource were twice as fast or free, or the plan another.

    A free resource bounds what any improvement of it can give; other plans are predicted in
    full.
    """
    from paceline.predictor.predict import prediction_of, prepare
    from paceline.predictor.whatif import what_if

    request = Request(options)
    clusters = request.clusters()
    if len(clusters) > 1:
        raise InputError("whatif looks at one place", "give one -j NODESxDEVICES")
    plan = request.plan(clusters[0].devices)
    case = prepare(request.workload(plan.dp), clusters[0], plan, **request.measured())
    base = prediction_of(case)
    found = what_if(case)
    if as_json:
        from paceline.predictor.prediction_json import prediction_json

        emit_json(
            "whatif",
            1,
            {
                "base": prediction_json(base),
                "changes": [
                    {
                        "kind": item.kind,
                        "change": item.change,
                        "step_seconds": item.step_seconds,
                        "saved_seconds": item.saved_seconds,
                        "speed_up": item.speed_up,
                        "fits": item.fits,
                    }
                    for item in found
                ],
            },
        )
        return
    from paceline.cli.prediction_tables import whatif_table
    from paceline.report.terminal import print_table

    click.echo(str(base))
    for kind in ("resource", "optimisation"):
        click.echo()
        print_table(whatif_table(found, kind))
    next_line("paceline predict with the same options and --timeline step.svg shows the step")
