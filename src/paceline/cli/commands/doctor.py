"""``paceline doctor``: check this machine or a set of hosts."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from paceline.cli.echo import echo
from paceline.cli.next_steps import next_line
from paceline.cli.options import launcher_options, launcher_settings, store_option
from paceline.cli.output import emit_json, json_option, show

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
    """Check the installation on this machine, and suggest fixes.

    With --hosts a,b --launcher ssh, check hosts before training on them: name resolution, ports,
    network interface, versions, clocks, and latency and bandwidth of every pair.
    """
    chosen = launcher_settings(options)
    if chosen:
        _examine_hosts(chosen, store_path, as_json)
        return
    from dataclasses import asdict

    from paceline.measurement.machine_check import examine
    from paceline.plugins import PluginKind
    from paceline.render.figures import figure_kinds
    from paceline.render.table import Column, Table

    findings = examine({PluginKind.FIGURE: figure_kinds})
    if as_json:
        emit_json("doctor", 1, {"findings": [asdict(finding) for finding in findings]})
        return
    columns = (Column("check"), Column("works"), Column("details"), Column("fix"))
    rows = tuple((f.name, "yes" if f.works else "no", f.detail, f.remedy) for f in findings)
    show([Table(columns, rows)])
    next_line("paceline demo", "paceline models")


def _examine_hosts(chosen: dict[str, Any], store_path: Path | None, as_json: bool) -> None:
    """Pre-flight check; exits with code 1 if it fails."""
    from paceline.cli.progress import study_progress
    from paceline.measurement.choose_launcher import chosen_launcher
    from paceline.measurement.host_tables import link_table
    from paceline.measurement.preflight import examine_hosts
    from paceline.store import Store, default_store_path
    from paceline.units import plural

    starter = chosen_launcher(**chosen)
    with Store(store_path or default_store_path()) as store, study_progress("hosts") as progress:
        progress.stage(f"checking {plural(len(starter.hosts()), 'host')}")
        found = examine_hosts(store, starter)
    if as_json:
        emit_json("hosts", 1, found.to_json())
    else:
        show([link_table(found.links)])
        for finding in found.findings:
            echo(f"{'ok    ' if finding.works else 'FAILED'} {finding.name}: {finding.detail}")
            if finding.remedy:
                echo(f"       fix: {finding.remedy}")
        options = " ".join(_option_texts(chosen))
        next_line(
            f"paceline probe {options}", f"paceline measure {options} -j {len(found.hosts)}x1"
        )
    if not found.works:
        raise SystemExit(1)


def _option_texts(chosen: dict[str, Any]) -> Iterable[str]:
    for option in ("launcher", "hosts"):
        if option in chosen:
            yield f"--{option} {chosen[option]}"
    for option in chosen.get("launcher_options", ()):
        yield f"--launcher-option {option}"
