"""The fit of this machine as lines."""

from paceline.calibration.machine_fit import MachineFit
from paceline.render.terminal import prose
from paceline.units import format_seconds, plural


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
