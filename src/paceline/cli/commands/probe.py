"""``paceline probe``: measure this machine and keep its profile, or the links between hosts."""

from pathlib import Path
from typing import Any

import click

from paceline.cli.next_steps import next_line, same_job
from paceline.cli.options import (
    launcher_options,
    launcher_settings,
    out_option,
    store_option,
)
from paceline.cli.output import emit_json, json_option, json_text, show, warn
from paceline.cli.say import say
from paceline.errors import InputError

EXAMPLE = """
\b
Examples:
  paceline probe
  paceline probe --ranks 2,4 --again
  paceline probe --hosts node1,node2 --launcher ssh -j 2x1 --out curve.json
  paceline probe --launcher lab -j 4x1
"""


@click.command(epilog=EXAMPLE)
@click.option("--ranks", default="2", show_default=True, help="Rank counts for all-reduce.")
@click.option("--threads", default=1, show_default=True, help="Threads of each rank.")
@click.option("--oversubscribe", is_flag=True, help="Allow more ranks x threads than cores.")
@click.option("--again", is_flag=True, help="Measure even if there is a recent profile.")
@click.option(
    "-j", "place", help="NODESxPROCESSES over which to measure all-reduce, instead of this machine."
)
@launcher_options
@out_option("--out", "Write the curve over hosts there, for 'predict --curve'.")
@store_option
@json_option
def command(
    ranks: str,
    threads: int,
    oversubscribe: bool,
    again: bool,
    place: str | None,
    out: Path | None,
    store_path: Path | None,
    as_json: bool,
    **chosen: Any,
) -> None:
    """Measure this machine: products by size, memory, all-reduce by size, co-location.

    The profile is kept with its date and used until it is a week old or the machine changes.
    With -j, --hosts or --launcher the all-reduce between hosts is measured instead, as a training
    step issues it; its curve is evidence for 'paceline predict --curve'.
    """
    if place is not None or launcher_settings(chosen):
        _probe_hosts(place, out, store_path, as_json, launcher_settings(chosen))
        return
    if out is not None:
        raise InputError("--out is for a curve over hosts", "add -j 2x1 and --hosts or --launcher")
    from paceline.cli.progress import study_progress
    from paceline.launch.launcher import own_cores
    from paceline.measurement.probe import current_profile, probe_machine
    from paceline.places import parse_counts
    from paceline.report.tables.profile import profile_parts
    from paceline.store import Store, default_store_path

    counts = parse_counts(ranks, "ranks", "--ranks")
    if min(counts) < 2 or threads < 1:
        raise InputError("all-reduce needs at least 2 ranks, each at least 1 thread", "--ranks 2")
    cores = own_cores()
    if max(counts) * threads > cores and not oversubscribe:
        raise InputError(
            f"{max(counts)} ranks need {max(counts) * threads} cores, and there are {cores}",
            "give fewer --ranks, or --oversubscribe to let them share cores",
        )
    with Store(store_path or default_store_path()) as store:
        profile = None if again else current_profile(store, threads)
        if profile is None or not set(counts) <= set(profile.all_reduce):
            with study_progress("probe") as progress:
                profile = probe_machine(store, counts, threads, on_stage=progress.stage)
    if as_json:
        emit_json("probe", 1, {"profile": profile.to_json()})
        return
    show(profile_parts(profile))
    warn(f"warning: {note}" for note in profile.notes)
    next_line(same_job("measure", model="resnet44", places="1x1,1x2"), "paceline demo")


def _probe_hosts(
    place: str | None, out: Path | None, path: Path | None, as_json: bool, chosen: dict[str, Any]
) -> None:
    """All-reduce over hosts: its curve on the screen and, where asked, in a file."""
    from paceline.api.hosts import chosen_launcher
    from paceline.cli.progress import study_progress
    from paceline.measurement.link_probe import probe_links
    from paceline.places import parse_place
    from paceline.report.files import write_text
    from paceline.report.tables.profile import curve_parts
    from paceline.store import Store, default_store_path

    starter = chosen_launcher(**chosen)
    nodes, processes = parse_place(place) if place else (len(starter.hosts()), 1)
    if nodes * processes < 2:
        raise InputError("all-reduce needs at least 2 ranks", "give -j 2x1 or more")
    with Store(path or default_store_path()) as store, study_progress("probe") as progress:
        progress.stage(f"all-reduce of {nodes} x {processes} ranks")
        curve = probe_links(store, starter, nodes, processes)
    if out is not None:
        write_text(out, json_text("curve", 1, curve.to_json()))
    if as_json:
        emit_json("curve", 1, curve.to_json())
        return
    show(curve_parts(curve))
    told = f"--curve {out} " if out is not None else ""
    if out is not None:
        say(f"Written: {out}")
        next_line(f"paceline predict --model resnet50 --device v100 {told}-j {nodes}x{processes}")
    else:
        next_line("paceline probe --help", "paceline doctor")
