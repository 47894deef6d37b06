"""``paceline whatif``: what faster resources or another plan would gain."""

from typing import Any

import click

from paceline.cli.next_steps import next_line, same_job
from paceline.cli.options import places_given
from paceline.cli.output import emit_json, json_option, show
from paceline.cli.plan_options import job_options
from paceline.errors import InputError

EXAMPLE = """
\b
Examples:
  paceline whatif --model bert_large --batch 8 --seq 64 --cluster hkbu-v100-pcie -j 8x4
  paceline whatif --model gpt3_6.7b --batch 16 --precision bf16 --cluster dgx-a100 -j 8x8 \\
      --tp 8 --pp 4 --micro-batch 2
"""


@click.command(epilog=EXAMPLE)
@job_options
@json_option
def command(as_json: bool, **options: Any) -> None:
    """Say what a step would gain if a resource were twice as fast or free, or the plan another.

    A free resource bounds what any improvement of it can give; other plans are predicted in
    full.
    """
    from paceline.api.predictions import whatif
    from paceline.report.tables.predictions import whatif_json, whatif_table

    places = places_given(options.pop("places"), options.pop("nodes"))
    if len(places) > 1:
        raise InputError("whatif looks at one place", "give one -j NODESxPROCESSES")
    found = whatif(**{**options, **places[0]})
    if as_json:
        emit_json("whatif", 1, whatif_json(found.base, found.changes))
        return
    show([str(found.base)])
    for kind in ("resource", "optimisation"):
        show(["", whatif_table(found.changes, kind)])
    next_line(same_job("predict", timeline="step.svg"))
