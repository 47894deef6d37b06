"""``paceline check``: a regression or noise, for continuous integration."""

from pathlib import Path

import click

from paceline.cli.next_steps import command_line, next_line
from paceline.cli.options import out_option, store_option
from paceline.cli.output import emit_json, json_option, show, warn
from paceline.cli.say import say
from paceline.cli.study_arguments import study_argument
from paceline.units import parse_percent

EXAMPLE = """
\b
Examples:
  paceline check resnet44-0147 resnet44-1115-2140
  paceline check resnet44-0147 resnet44-1115-2140 --threshold 5% --markdown change.md

Exit codes: 0 no regression, 1 a regression, 2 a mistake.
"""

STUDIES_OF_HISTORY = 30
"""The newest other studies that tell how sessions differ: more of them take long to read."""


@click.command(epilog=EXAMPLE)
@study_argument("base", may_be_left_out=False)
@study_argument("new", may_be_left_out=False)
@click.option(
    "--threshold", default="2%", show_default=True, help="The least slowdown that matters."
)
@click.option("--no-history", is_flag=True, help="Leave other studies of the store out.")
@out_option("--markdown", "Write the table for a pull request there.")
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
    """Say whether study NEW is slower than study BASE, or whether it is noise.

    Every configuration that both measured is compared over launches. Where three or more other
    studies of the store measured it, the difference from one session to the next counts as noise.
    """
    from paceline.analyse.regression import time_changes
    from paceline.report.files import write_text
    from paceline.report.markup import to_markdown
    from paceline.report.tables.changes import changes_json, changes_table
    from paceline.store import Store, default_store_path

    with Store(store_path or default_store_path(), create=False) as store:
        before, after = store.study(base), store.study(new)
        others = [] if no_history else [one for one in store.studies() if one not in (base, new)]
        earlier = others[-STUDIES_OF_HISTORY:]
        history = [launch for name in earlier for launch in store.launches(name)]
    changes = time_changes(before, after, history, parse_percent(threshold))
    regressions = [one for one in changes if one.is_regression]
    table = changes_table(changes)
    if markdown is not None:
        verdict = f"{len(regressions)} of {len(changes)} configurations are slower"
        write_text(markdown, f"### {verdict}\n\n{to_markdown(table)}")
    if as_json:
        found = {"base": base, "new": new, "regressions": len(regressions)}
        emit_json("check", 1, {**found, "changes": changes_json(changes)})
    else:
        show([table])
        machines = {str(one.environment.get("cpu_model")) for one in (*before, *after)}
        if len(machines) > 1:
            warn([f"warning: they ran on different machines: {', '.join(sorted(machines))}"])
        say(f"{len(regressions)} of {len(changes)} configurations are slower")
        next_line(command_line("diff", base, new))
    if regressions:
        raise SystemExit(1)
