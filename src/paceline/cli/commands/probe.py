"""``paceline probe``: measure this machine and keep its profile."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from paceline.cli.options import store_option
from paceline.cli.output import emit_json, json_option, next_line

if TYPE_CHECKING:
    from paceline.hardware.profile import MachineProfile

EXAMPLE = """
\b
Examples:
  paceline probe
  paceline probe --ranks 2,4 --again
"""


@click.command(epilog=EXAMPLE)
@click.option("--ranks", default="2", show_default=True, help="Rank counts for all-reduce.")
@click.option("--threads", default=1, show_default=True, help="Threads of each rank.")
@click.option("--again", is_flag=True, help="Measure even if there is a recent profile.")
@store_option
@json_option
def command(ranks: str, threads: int, again: bool, store_path: Path | None, as_json: bool) -> None:
    """Measure this machine: products by size, memory, all-reduce by size, sharing.

    The profile is kept with its date and used until it is a week old or the machine changes.
    """
    from paceline.cli.progress import study_progress
    from paceline.errors import InputError
    from paceline.measurement.probe import current_profile, probe_machine
    from paceline.store import Store, default_store_path

    try:
        counts = [int(part) for part in ranks.split(",")]
    except ValueError:
        raise InputError(f"'{ranks}' are not rank counts", "write --ranks 2,4") from None
    if min(counts) < 2 or threads < 1:
        raise InputError("all-reduce needs at least 2 ranks, each at least 1 thread", "--ranks 2")
    with Store(store_path or default_store_path()) as store:
        profile = None if again else current_profile(store, threads)
        if profile is None or not set(counts) <= set(profile.all_reduce):
            with study_progress("probe") as progress:
                profile = probe_machine(store, counts, threads, on_stage=progress.stage)
    if as_json:
        emit_json("probe", 1, {"profile": profile.to_json()})
        return
    print_profile(profile)
    next_line("paceline measure --model resnet44 -j 1x1,1x2", "paceline demo")


def print_profile(profile: "MachineProfile") -> None:
    """The profile as a few tables."""
    from paceline.report.table import Column, Table
    from paceline.report.terminal import print_table
    from paceline.units import format_bandwidth, format_bytes

    click.echo(f"{profile.machine}, {profile.threads} thread a rank, {profile.measured_at}")
    click.echo(f"{profile.source}; load average {profile.load_average:.1f}")
    print_table(
        Table(
            (Column("product of"), Column("GFLOP/s", scale=1e-9)),
            tuple((f"{n} x {n}", rate) for n, rate in sorted(profile.gemm_flops.items())),
        )
    )
    click.echo(f"memory: {format_bandwidth(profile.memory_bandwidth)}")
    for ranks, curve in sorted(profile.all_reduce.items()):
        shared = profile.colocation[ranks]
        click.echo(
            f"{ranks} ranks at once: products {shared.arithmetic:.2f} times slower, "
            f"memory {shared.memory:.2f} times"
        )
        print_table(
            Table(
                (
                    Column(f"all-reduce, {ranks} ranks"),
                    Column("median", "us", scale=1e6),
                    Column("quartiles", "us"),
                    Column("GB/s", scale=1e-9, decimals=2),
                ),
                tuple(
                    (
                        format_bytes(point.size_bytes),
                        point.seconds,
                        f"{point.lower_quartile_seconds * 1e6:,.0f} .. "
                        f"{point.upper_quartile_seconds * 1e6:,.0f}",
                        point.size_bytes / point.seconds,
                    )
                    for point in curve
                ),
            )
        )
    for note in profile.notes:
        click.echo(f"warning: {note}", err=True)
