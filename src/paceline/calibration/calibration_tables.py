"""The profile of a machine, the fit of its launches and its predictions as tables and lines."""

from collections.abc import Sequence

from paceline.analysis.configurations import LaunchGroup
from paceline.calibration.machine_fit import MachineFit
from paceline.calibration.prediction_error import Comparison
from paceline.hardware.machine_profile import CollectivePoint, MachineProfile
from paceline.measurement.probe.allreduce_curves import CollectiveCurve
from paceline.render.number_format import Ranged
from paceline.render.table import Column, Table
from paceline.render.terminal import prose
from paceline.units import format_bandwidth, format_bytes, format_flops, format_seconds, plural


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
    title = f"{curve.ranks} ranks on {plural(curve.nodes, 'host')}, {curve.source}{load}"
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


def comparison_table(alone: LaunchGroup, comparisons: Sequence[Comparison]) -> Table:
    """Measured and predicted throughput, the error, and the error of perfect scaling."""
    rows: list[tuple[str | float | Ranged | None, ...]] = [
        ("1 process", Ranged.of(alone.throughput), "(calibration)", None, None, None)
    ]
    for one in comparisons:
        low, high = one.prediction.samples_per_second_interval
        rows.append(
            (
                one.label,
                Ranged.of(one.measured.throughput) if one.measured else None,
                f"{one.prediction.samples_per_second:,.1f} [{low:,.1f}, {high:,.1f}]",
                one.error,
                one.prediction.perfect_samples_per_second,
                one.perfect_error,
            )
        )
    return Table(
        columns=(
            Column(""),
            Column("measured", "samples/s"),
            Column("predicted", "samples/s"),
            Column("error", "%", scale=100, decimals=1, signed=True),
            Column("perfect scaling", "samples/s"),
            Column("its error", "%", scale=100, decimals=1, signed=True),
        ),
        rows=tuple(rows),
        note="±: 95 % interval of the mean over launches; [ ]: 90 % interval of a prediction. "
        "Predictions use no synchronised launch.",
    )


def fit_lines(fit: MachineFit) -> list[str]:
    """Quality of the fit, width of prediction intervals, and the most informative next runs."""
    lines = [
        f"{fit.model}, batch {fit.batch}, {fit.framework}: "
        f"{plural(fit.launches, 'finished launch')} on this machine"
    ]
    if fit.compute is not None:
        curve = fit.compute
        found = f"worst residual {curve.worst_residual:.1%}"
        if len(curve.batches) == 2:
            found = "no residual: two batch sizes determine the line"
        lines.append(
            f"step time of one process: {format_seconds(curve.fixed_seconds)} + "
            f"{format_seconds(curve.seconds_per_sample)} per sample, from batch sizes "
            f"{', '.join(map(str, sorted(curve.batches)))}; {found}"
        )
    lines += [
        f"all-reduce of {one.ranks} ranks during training: {one.ratio_to_probe:.2f} x the "
        f"probe ({plural(one.messages, 'message')})"
        for one in fit.in_situ
    ]
    lines.append(
        f"coefficient of variation: {fit.step_variation:.1%} between steps, "
        f"{fit.launch_variation:.1%} between launches"
    )
    lines += [
        f"check: {plural(check.processes, 'process')}: predicted "
        f"{format_seconds(check.predicted_seconds)} per step without their "
        f"{plural(check.launches, 'launch')}, measured "
        f"{format_seconds(check.measured_seconds)} ({check.error:+.1%})"
        for check in fit.checks
    ]
    if not fit.checks:
        lines.append("check: none (needs synchronised launches of several processes)")
    width = "none yet" if fit.half_width is None else f"± {fit.half_width:.1%}"
    lines.append(f"90 % interval of predictions here: {width}")
    first, *rest = lines
    return [first, *map(_wrapped, rest), *_next_runs(fit)]


def _next_runs(fit: MachineFit) -> list[str]:
    lines = ["  most informative next runs:"]
    for run in fit.next_runs:
        then = "" if run.half_width is None else f" (then ± {run.half_width:.1%})"
        lines += [_wrapped(f"  {run.why}{then}"), f"      {run.command}"]
    return lines


def _wrapped(text: str) -> str:
    return "\n".join(prose(f"  {text}", "    "))
