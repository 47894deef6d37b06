"""The profile of a machine as tables and lines."""

from paceline.hardware.machine_profile import CollectivePoint, MachineProfile
from paceline.measurement.probe.allreduce_curves import CollectiveCurve
from paceline.render.table import Column, Table
from paceline.units import format_bandwidth, format_bytes, format_flops, format_seconds


def profile_parts(profile: MachineProfile) -> list[str | Table]:
    """The profile in the order in which it is printed."""
    parts: list[str | Table] = [
        f"{profile.machine}, {profile.threads} thread per rank, {profile.measured_at}",
        f"{profile.source}; load average {profile.load_average:.1f}",
        gemm_table(profile),
        f"memory: {format_bandwidth(profile.memory_bandwidth)}",
    ]
    for ranks, curve in sorted(profile.all_reduce.items()):
        shared = profile.colocation[ranks]
        parts.append(
            f"{ranks} ranks at once: GEMM {shared.arithmetic:.2f} times slower, "
            f"memory {shared.memory:.2f} times"
        )
        parts.append(_all_reduce_table(ranks, curve))
    return parts


def curve_parts(curve: CollectiveCurve) -> list[str | Table]:
    """A curve over hosts, in the order in which it is printed."""
    load = "" if curve.load_average is None else f"; load average {curve.load_average:.1f}"
    title = f"{curve.ranks} ranks on {curve.nodes} hosts, {curve.source}{load}"
    table = Table.of(
        curve.points,
        (Column("all-reduce size"), lambda point: format_bytes(point.size_bytes)),
        (Column("time", "ms", scale=1e3), lambda point: point.seconds),
        (Column("quartiles", "ms"), _milliseconds),
        (Column("bus bandwidth", "MB/s", scale=1e-6), curve.bus_bandwidth),
        note="Time of one message with several in flight, as with buckets in training.",
    )
    return [title, table]


def _milliseconds(point: CollectivePoint) -> str:
    ends = (point.lower_quartile_seconds, point.upper_quartile_seconds)
    return " .. ".join(f"{seconds * 1e3:,.2f}" for seconds in ends)


def gemm_table(profile: MachineProfile, note: str = "") -> Table:
    return Table(
        (Column("GEMM size"), Column("GFLOP/s", scale=1e-9)),
        tuple((f"{n} x {n}", rate) for n, rate in sorted(profile.gemm_flops.items())),
        note=note,
    )


def describe_profile(profile: MachineProfile, ranks: int) -> str:
    """The machine in one line: arithmetic, memory, and the all-reduce of ``ranks``."""
    small, large = profile.all_reduce[ranks][0], profile.all_reduce[ranks][-1]
    return (
        f"GEMM {format_flops(profile.peak_gemm_flops)}/s · memory "
        f"{format_bandwidth(profile.memory_bandwidth)} · all-reduce of {ranks} ranks "
        f"{format_seconds(small.seconds)} + {format_bandwidth(large.size_bytes / large.seconds)}"
    )


def _all_reduce_table(ranks: int, curve: tuple[CollectivePoint, ...]) -> Table:
    def quartiles(point: CollectivePoint) -> str:
        ends = (point.lower_quartile_seconds, point.upper_quartile_seconds)
        return " .. ".join(f"{seconds * 1e6:,.0f}" for seconds in ends)

    return Table.of(
        curve,
        (Column(f"all-reduce, {ranks} ranks"), lambda point: format_bytes(point.size_bytes)),
        (Column("median", "us", scale=1e6), lambda point: point.seconds),
        (Column("quartiles", "us"), quartiles),
        (Column("GB/s", scale=1e-9, decimals=2), lambda point: point.size_bytes / point.seconds),
    )
