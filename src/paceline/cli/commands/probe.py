"""``paceline probe``: measure this machine and keep its profile."""

from pathlib import Path

import click

from paceline.cli.next_steps import next_line, same_job
from paceline.cli.options import store_option
from paceline.cli.output import emit_json, json_option, show, warn
from paceline.errors import InputError

EXAMPLE = """
\b
Examples:
  paceline probe
  paceline probe --ranks 2,4 --again
"""


@click.command(epilog=EXAMPLE)
@click.option("--ranks", default="2", show_default=True, help="Rank counts for all-reduce.")
@click.option("--threads", default=1, show_default=True, help="Threads of each rank.")
@click.option("--oversubscribe", is_flag=True, help="Allow more ranks x threads than cores.")
@click.option("--again", is_flag=True, help="Measure even if there is a recent profile.")
@store_option
@json_option
def command(
    ranks: str,
    threads: int,
    oversubscribe: bool,
    again: bool,
    store_path: Path | None,
    as_json: bool,
) -> None:
    """Measure this machine: products by size, memory, all-reduce by size, co-location.

    The profile is kept with its date and used until it is a week old or the machine changes.
    """
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
