"""``paceline doctor``: what works here, and what to install for the rest."""

import click

from paceline.cli.output import emit_json, json_option, next_line

EXAMPLE = """
\b
Example:
  paceline doctor
"""


@click.command(epilog=EXAMPLE)
@json_option
def command(as_json: bool) -> None:
    """Say what works on this machine and what to install for the rest."""
    from paceline.analyse.doctor import examine
    from paceline.plugins import PluginKind
    from paceline.report.figures import figure_kinds
    from paceline.report.table import Column, Table
    from paceline.report.terminal import print_table

    findings = examine({PluginKind.FIGURE: figure_kinds})
    if as_json:
        emit_json(
            "doctor",
            1,
            {
                "findings": [
                    {"name": f.name, "works": f.works, "detail": f.detail, "remedy": f.remedy}
                    for f in findings
                ]
            },
        )
        return
    print_table(
        Table(
            (Column("what"), Column("works"), Column("found"), Column("to change that")),
            tuple((f.name, "yes" if f.works else "no", f.detail, f.remedy) for f in findings),
        )
    )
    next_line("paceline demo", "paceline models")
