"""``paceline reproduce``: five published studies beside predictions for their machines."""

import click

from paceline.cli.next_steps import next_line
from paceline.cli.output import emit_json, json_option, show

EXAMPLE = """
\b
Examples:
  paceline reproduce
  paceline reproduce A
  paceline reproduce sgd2018 --json
"""


@click.command(epilog=EXAMPLE)
@click.argument("studies", nargs=-1)
@json_option
def command(studies: tuple[str, ...], as_json: bool) -> None:
    """Set what published STUDIES [all five] measured beside what is predicted for their machines.

    Each curve is predicted from its smallest published point. What a paper does not print as a
    number is listed as left out.
    """
    from paceline.api.reproduction import reproduce
    from paceline.report.tables.reproduction import (
        reproduction_json,
        reproduction_parts,
        summary_table,
    )

    found = reproduce(studies)
    if as_json:
        emit_json("reproduce", 1, reproduction_json(found))
        return
    for one in found:
        show([*reproduction_parts(one), ""])
    show([summary_table(found)])
    next_line("paceline validate --hold-out source", "paceline published --sources")
