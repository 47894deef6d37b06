"""``paceline check``: regression test of two studies, for continuous integration."""

from pathlib import Path

import click

from paceline.cli.echo import echo
from paceline.cli.next_steps import command_line, next_line
from paceline.cli.options import out_option, store_option
from paceline.cli.output import emit_json, json_option, show, warn
from paceline.cli.study_arguments import study_argument
from paceline.units import parse_percent, plural

EXAMPLE = """
\b
Examples:
  paceline check resnet44-0147 resnet44-1115-2140
  paceline check resnet44-0147 resnet44-1115-2140 --threshold 5% --markdown change.md

Exit codes: 0 no regression, 1 regression, 2 usage error.
"""

STUDIES_OF_HISTORY = 30
"""Newest other studies used to estimate the variance between studies; bounds the time to read."""


@click.command(epilog=EXAMPLE)
@study_argument("base", may_be_left_out=False)
@study_argument("new", may_be_left_out=False)
@click.option(
    "--threshold",
    metavar="PERCENT",
    default="2%",
    show_default=True,
    help="Smallest slowdown that counts as a regression.",
)
@click.option("--no-history", is_flag=True, help="Ignore other studies of the store.")
@out_option("--markdown", "Write the table as Markdown, for a pull request.")
@store_option
@json_option
def command(
    base: str,
    new: str,
    threshold: str,
    no_history: bool,
    markdown: Path | None,
    store_path: Path | None,
    as_json: bool,
) -> None:
    """Test whether study NEW is significantly slower than study BASE.

    Compares the launches of every configuration that is in both studies. If three or more other
    studies in the store measured it, the test includes the variance between studies, and the
    detectable change is printed. Without them a regression cannot be distinguished from
    day-to-day variation, and a warning is printed.
    """
    from paceline.analysis.regression import time_changes
    from paceline.analysis.regression_tables import campaign_warnings, changes_json, changes_table
    from paceline.render.files import write_text
    from paceline.render.markup import to_markdown
    from paceline.store import Store, default_store_path

    with Store(store_path or default_store_path(), create=False) as store:
        before, after = store.study(base), store.study(new)
        others = [] if no_history else [one for one in store.studies() if one not in (base, new)]
        earlier = others[-STUDIES_OF_HISTORY:]
        history = [launch for name in earlier for launch in store.launches(name)]
    changes = time_changes(before, after, history, parse_percent(threshold))
    regressions = [one for one in changes if one.is_regression]
    table, alone = changes_table(changes), campaign_warnings(changes)
    verdict = f"{len(regressions)} of {plural(len(changes), 'configuration')} slower"
    if markdown is not None:
        warned = "".join(f"\n{line}\n" for line in alone)
        write_text(markdown, f"### {verdict}\n\n{to_markdown(table)}{warned}")
    warn(alone)
    if as_json:
        found = {"base": base, "new": new, "regressions": len(regressions)}
        emit_json("check", 1, {**found, "changes": changes_json(changes)})
    else:
        show([table])
        machines = {str(one.environment.get("cpu_model")) for one in (*before, *after)}
        if len(machines) > 1:
            warn([f"warning: the studies ran on different machines: {', '.join(sorted(machines))}"])
        echo(verdict)
        next_line(command_line("diff", base, new))
    if regressions:
        raise SystemExit(1)
