"""``paceline calibrate``: fit predictions to the launches of this machine."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from paceline.cli.echo import echo
from paceline.cli.next_steps import next_line, with_store
from paceline.cli.options import store_option
from paceline.cli.output import emit_json, json_option

if TYPE_CHECKING:
    from paceline.calibration.machine_fit import MachineFit

EXAMPLE = """
\b
Examples:
  paceline calibrate
  paceline calibrate --model resnet44 --json
"""


@click.command(epilog=EXAMPLE)
@click.option(
    "--model", metavar="NAME", help="Model to fit [default: the one with the most launches]."
)
@store_option
@json_option
def command(model: str | None, store_path: Path | None, as_json: bool) -> None:
    """Fit predictions to the launches of this machine and report the quality of the fit.

    Fits step time by batch size, all-reduce time during training, and variation between launches.
    Reports the width of prediction intervals and the run that would narrow them most. The result
    is stored in the machine profile, which 'paceline predict' uses.
    """
    from dataclasses import asdict

    from paceline.study.api import calibrate

    fit = calibrate(model, store=store_path)
    if as_json:
        emit_json("calibrate", 2, {"fit": asdict(fit)})
        return
    _print(fit)
    next_line(with_store(fit.next_runs[0].command))


def _print(fit: "MachineFit") -> None:
    from paceline.units import format_seconds, plural

    echo(
        f"{fit.model}, batch {fit.batch}, {fit.framework}: "
        f"{plural(fit.launches, 'finished launch')} on this machine"
    )
    if fit.compute is not None:
        curve = fit.compute
        found = f"worst residual {curve.worst_residual:.1%}"
        if len(curve.batches) == 2:
            found = "no residual: two batch sizes determine the line"
        _echo_wrapped(
            f"step time of one process: {format_seconds(curve.fixed_seconds)} + "
            f"{format_seconds(curve.seconds_per_sample)} per sample, from batch sizes "
            f"{', '.join(map(str, sorted(curve.batches)))}; {found}"
        )
    for one in fit.in_situ:
        _echo_wrapped(
            f"all-reduce of {one.ranks} ranks during training: {one.ratio_to_probe:.2f} x the "
            f"probe ({plural(one.messages, 'message')})"
        )
    _echo_wrapped(
        f"coefficient of variation: {fit.step_variation:.1%} between steps, "
        f"{fit.launch_variation:.1%} between launches"
    )
    for check in fit.checks:
        _echo_wrapped(
            f"check: {plural(check.processes, 'process')}: predicted "
            f"{format_seconds(check.predicted_seconds)} per step without their "
            f"{plural(check.launches, 'launch')}, measured "
            f"{format_seconds(check.measured_seconds)} ({check.error:+.1%})"
        )
    if not fit.checks:
        _echo_wrapped("check: none (needs synchronised launches of several processes)")
    if fit.half_width is not None:
        _echo_wrapped(f"90 % interval of predictions here: ± {fit.half_width:.1%}")
    else:
        _echo_wrapped("90 % interval of predictions here: none yet")
    echo("  most informative next runs:")
    for run in fit.next_runs:
        then = "" if run.half_width is None else f" (then ± {run.half_width:.1%})"
        _echo_wrapped(f"  {run.why}{then}")
        echo(f"      {run.command}")


def _echo_wrapped(text: str) -> None:
    import textwrap

    echo(textwrap.fill(text, 100, initial_indent="  ", subsequent_indent="    "))
