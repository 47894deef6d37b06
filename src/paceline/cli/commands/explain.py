"""``paceline explain``: break a measured step down by cause."""

from pathlib import Path

import click

from paceline.cli.next_steps import command_line, same_job
from paceline.cli.options import IntegerRange, store_option
from paceline.cli.output import emit, json_option
from paceline.cli.study_arguments import study_argument

EXAMPLE = """
\b
Examples:
  paceline explain resnet44-1115-214119
  paceline explain resnet44-1115-214119 --processes 2 --json
  paceline explain resnet44-1115-214119 --against resnet44-1115-2140
  paceline explain resnet44-1115-214119 --against predicted
  paceline explain train --try threads=1
  paceline explain resnet44-1115-214119 --mfu --device v100_sxm2_16gb
"""


@click.command(epilog=EXAMPLE)
@study_argument()
@click.option(
    "--processes", type=IntegerRange(), help="Number of processes [default: the largest]."
)
@click.option(
    "--framework",
    metavar="NAME",
    help="Framework, in a study of several [default: that of the first finished launch].",
)
@click.option(
    "--against",
    metavar="STUDY|LAUNCH|predicted",
    help="Compare the step task by task with another study, a launch, or the prediction.",
)
@click.option(
    "--try",
    "trials",
    multiple=True,
    metavar="NAME=VALUE",
    help="Repeat the command of 'run' without and with a remedy, such as threads=1; repeatable.",
)
@click.option(
    "--pairs",
    type=IntegerRange(min=1),
    default=3,
    show_default=True,
    help="Pairs of launches for --try.",
)
@click.option("--mfu", is_flag=True, help="Also break down model FLOPs utilisation (MFU).")
@click.option(
    "--device",
    metavar="NAME",
    help="Device for --mfu, from 'paceline catalog devices' [default: this machine].",
)
@store_option
@json_option
def command(
    study: str,
    processes: int | None,
    framework: str | None,
    against: str | None,
    trials: tuple[str, ...],
    pairs: int,
    mfu: bool,
    device: str | None,
    store_path: Path | None,
    as_json: bool,
) -> None:
    """Break a measured step down by cause and suggest improvements.

    Uses launches of measure, run, record and import. Include a one-process run to
    separate contention from communication. Missing measurements are listed with the command
    that collects them.
    """
    from paceline.explanation.api import explain

    found = explain(
        study,
        processes=processes,
        framework=framework,
        against=against,
        trials=trials,
        pairs=pairs,
        mfu=mfu,
        device=device,
        store=store_path,
    )
    emit(found, as_json, same_job("report"), command_line("study", "show", study))
