"""``paceline explain``: from the ideal step to the measured one."""

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
@click.option("--processes", type=int, help="Which configuration [default: the largest].")
@click.option("--framework", help="Whose launches, in a comparison [default: the first].")
@click.option(
    "--against",
    help="Compare a step, task by task, with that of another study or launch, or 'predicted'.",
)
@click.option("--mfu", is_flag=True, help="Explain the utilisation of the peak (MFU) too.")
@click.option("--device", help="With --mfu: what it ran on, of the catalogue [this machine].")
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
    """Say why a step is as long as it is, cause by cause, and what would shorten it.

    Takes the launches of measure, run, record, compare and import. One process beside several
    tells what sharing and communication cost; what the launches do not tell is said.
    """
    from paceline.api.measuring import explain, utilisation
    from paceline.report.tables import explanation as tables
    from paceline.report.tables.steps import difference_tables
    from paceline.report.tables.utilisation import utilisation_parts
    from paceline.report.terminal_waterfall import print_waterfall
    from paceline.study import Study

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
    print_waterfall(tables.noted_waterfall(found), tables.explanation_title(found))
    phases = tables.phases_table(found)
    show(tables.finding_lines(found))
    show([*([phases] if phases else []), *tables.missing_lines(found)])
    if reached is not None:
        show(utilisation_parts(reached))
    if changes is not None:
        show(difference_tables(changes, str(against), study))
    next_line(same_job("report"), same_job("list"))
