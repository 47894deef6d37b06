"""``paceline calibrate``: what this machine's own launches tell, and what to run next."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from paceline.cli.next_steps import next_line, with_store
from paceline.cli.options import store_option
from paceline.cli.output import emit_json, json_option

if TYPE_CHECKING:
    from paceline.analyse.machine_fit import MachineFit

EXAMPLE = """
\b
Examples:
  paceline calibrate
  paceline calibrate --model resnet44 --json
"""


@click.command(epilog=EXAMPLE)
@click.option("--model", help="Which model's launches [default: the one with most].")
@store_option
@json_option
def command(model: str | None, store_path: Path | None, as_json: bool) -> None:
    """Fit this machine from its own launches, and say how good the fit is.

    Fits the step by batch, the all-reduce as it runs inside training, and how much launches vary;
    says how wide predictions are because of it, and which run would narrow them most. The
    machine's profile keeps what was learnt, and 'paceline predict' uses it from then on.
    """
    from dataclasses import asdict

    from paceline.api.measuring import calibrate

    fit = calibrate(model, store=store_path)
    if as_json:
        emit_json("calibrate", 2, {"fit": asdict(fit)})
        return
    _print(fit)
    next_line(with_store(fit.next_runs[0].command))


def _print(fit: "MachineFit") -> None:
    from paceline.units import format_seconds

    click.echo(
        f"{fit.model}, batch {fit.batch}, {fit.framework}: {fit.launches} finished launches on "
        "this machine"
    )
    if fit.compute is not None:
        curve = fit.compute
        found = f"worst residual {curve.worst_residual:.1%}"
        if len(curve.batches) == 2:
            found = "two batches always fit a line"
        _say(
            f"step of one process: {format_seconds(curve.fixed_seconds)} + "
            f"{format_seconds(curve.seconds_per_sample)} a sample, from batches "
            f"{', '.join(map(str, sorted(curve.batches)))}; {found}"
        )
    for one in fit.in_situ:
        _say(
            f"all-reduce of {one.ranks} ranks inside training: {one.ratio_to_probe:.2f} times "
            f"the probe's ({one.messages} messages)"
        )
    _say(
        f"variation: {fit.step_variation:.1%} between steps of a launch, "
        f"{fit.launch_variation:.1%} between launches"
    )
    for check in fit.checks:
        _say(
            f"check: {check.processes} processes predicted at "
            f"{format_seconds(check.predicted_seconds)} a step without their {check.launches} "
            f"launches, measured {format_seconds(check.measured_seconds)} ({check.error:+.1%})"
        )
    if not fit.checks:
        _say("check: none yet; synchronised launches of several processes would make one")
    if fit.half_width is not None:
        _say(f"predictions here: ± {fit.half_width:.1%} (90 %)")
    else:
        _say("predictions here: none yet")
    click.echo("  what would tell more:")
    for run in fit.next_runs:
        then = "" if run.half_width is None else f" (then ± {run.half_width:.1%})"
        _say(f"  {run.why}{then}")
        click.echo(f"      {run.command}")


def _say(text: str) -> None:
    import textwrap

    click.echo(textwrap.fill(text, 100, initial_indent="  ", subsequent_indent="    "))
