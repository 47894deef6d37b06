"""``paceline doctor``: what works here, and what to install for the rest."""

import click

from paceline.cli.next_steps import next_line
from paceline.cli.output import emit_json, json_option, show

EXAMPLE = """
\b
Example:
  paceline doctor
"""


@click.command(epilog=EXAMPLE)
@json_option
def command(as_json: bool) -> None:
    """Say what works on this machine and what to install for the rest."""
    from dataclasses import asdict

    from paceline.analyse.doctor import examine
    from paceline.plugins import PluginKind
    from paceline.report.figures import figure_kinds
    from paceline.report.table import Column, Table

    findings = examine({PluginKind.FIGURE: figure_kinds})
    if as_json:
        emit_json("doctor", 1, {"findings": [asdict(finding) for finding in findings]})
        return
    columns = (Column("what"), Column("works"), Column("found"), Column("to change that"))
    rows = tuple((f.name, "yes" if f.works else "no", f.detail, f.remedy) for f in findings)
    show([Table(columns, rows)])
    next_line("paceline demo", "paceline models")
