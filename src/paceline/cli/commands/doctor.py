"""``paceline doctor``: what works here, or between hosts, and what to do about the rest."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from paceline.cli.next_steps import next_line
from paceline.cli.options import launcher_options, launcher_settings, store_option
from paceline.cli.output import emit_json, json_option, show
from paceline.cli.say import say

EXAMPLE = """
\b
Examples:
  paceline doctor
  paceline doctor --hosts localhost,localhost
"""


@click.command(epilog=EXAMPLE)
@launcher_options
@store_option
@json_option
def command(store_path: Path | None, as_json: bool, **options: Any) -> None:
    """Say what works on this machine and what to install for the rest.

    With --hosts a,b --launcher ssh, look at hosts before anything trains on them: names both ways,
    ports, the interface to set, versions, clocks, latency and bandwidth of every pair.
    """
    chosen = launcher_settings(options)
    if chosen:
        _examine_hosts(chosen, store_path, as_json)
        return
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


def _examine_hosts(chosen: dict[str, Any], store_path: Path | None, as_json: bool) -> None:
    """A pre-flight; hosts that are not ready end with code 1."""
    from paceline.api.hosts import chosen_launcher
    from paceline.cli.progress import study_progress
    from paceline.measurement.preflight import examine_hosts
    from paceline.report.tables.hosts import link_table
    from paceline.store import Store, default_store_path

    starter = chosen_launcher(**chosen)
    with Store(store_path or default_store_path()) as store, study_progress("hosts") as progress:
        progress.stage(f"{len(starter.hosts())} hosts look at each other")
        found = examine_hosts(store, starter)
    if as_json:
        emit_json("hosts", 1, found.to_json())
    else:
        show([link_table(found.links)])
        for finding in found.findings:
            say(f"{'ok   ' if finding.works else 'WRONG'} {finding.name}: {finding.detail}")
            if finding.remedy:
                say(f"      to change that: {finding.remedy}")
        words = " ".join(_words(chosen))
        next_line(f"paceline probe {words}", f"paceline measure {words} -j {len(found.hosts)}x1")
    if not found.works:
        raise SystemExit(1)


def _words(chosen: dict[str, Any]) -> Iterable[str]:
    for option in ("launcher", "hosts"):
        if option in chosen:
            yield f"--{option} {chosen[option]}"
    for option in chosen.get("launcher_options", ()):
        yield f"--launcher-option {option}"
