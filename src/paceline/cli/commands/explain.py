"""``paceline explain``: break a measured step down by cause."""

from dataclasses import asdict
from pathlib import Path

import click

from paceline.cli.next_steps import next_line, same_job
from paceline.cli.options import store_option
from paceline.cli.output import emit_json, json_option, show
from paceline.cli.study_arguments import study_argument

EXAMPLE = """
\b
Examples:
  paceline explain resnet44-1115-214119
  paceline explain resnet44-1115-214119 --processes 2 --json
  paceline explain resnet44-1115-214119 --against resnet44-1115-2140
  paceline explain resnet44-1115-214119 --against predicted
  paceline explain resnet44-1115-214119 --mfu --device v100_sxm2_16gb
"""


@click.command(epilog=EXAMPLE)
@study_argument()
@click.option("--processes", type=int, help="Number of processes [default: the largest].")
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
@click.option("--mfu", is_flag=True, help="Also break down model FLOPs utilisation (MFU).")
@click.option(
    "--device",
    metavar="NAME",
    help="Device for --mfu, from 'paceline hardware devices' [default: this machine].",
)
@store_option
@json_option
def command(
    study: str,
    processes: int | None,
    framework: str | None,
    against: str | None,
    mfu: bool,
    device: str | None,
    store_path: Path | None,
    as_json: bool,
) -> None:
    """Break a measured step down by cause and suggest improvements.

    Uses launches of measure, run, record, compare and import. Include a one-process run to
    separate contention from communication. Missing measurements are listed with the command
    that collects them.
    """
    from paceline.explanation import explanation_tables as tables
    from paceline.explanation.utilisation_tables import utilisation_parts
    from paceline.render.step_tables import difference_tables
    from paceline.render.terminal_waterfall import print_waterfall
    from paceline.study import Study
    from paceline.study.api import explain, utilisation

    opened = Study.load(study, store_path)
    found = explain(opened, processes=processes, framework=framework)
    changes = opened.difference(against, processes, framework) if against else None
    reached = None
    if mfu:
        reached = utilisation(opened, processes=processes, framework=framework, device=device)
    if as_json:
        document = {"study": study, **tables.explanation_json(found)}
        if changes is not None:
            document["difference"] = asdict(changes)
        if reached is not None:
            document["utilisation"] = asdict(reached)
        emit_json("explain", 2, document)
        return
    title, kind = tables.explanation_title(found), tables.step_kind(found)
    print_waterfall(tables.noted_waterfall(found), title, kind)
    show(tables.instrumented_lines(found))
    phases = tables.phases_table(found)
    show(tables.finding_lines(found))
    show([*([phases] if phases else []), *tables.missing_lines(found)])
    if reached is not None:
        show(utilisation_parts(reached))
    if changes is not None:
        show(difference_tables(changes, str(against), study))
    next_line(same_job("report"), same_job("list"))
