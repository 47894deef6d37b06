"""``paceline explain``: from the ideal step to the measured one."""

from pathlib import Path

import click

from paceline.cli.options import store_option
from paceline.cli.output import emit_json, json_option, next_line

EXAMPLE = """
\b
Examples:
  paceline explain resnet44-1115-214119
  paceline explain resnet44-1115-214119 --processes 2 --json
"""


@click.command(epilog=EXAMPLE)
@click.argument("study")
@click.option("--processes", type=int, help="Which configuration [default: the largest].")
@store_option
@json_option
def command(study: str, processes: int | None, store_path: Path | None, as_json: bool) -> None:
    """Say why several processes are slower than perfect scaling, cause by cause.

    Uses what the study has: plain launches on one and several processes, launches side by side
    (--unsynchronised) for what sharing costs, and timed ones (--instrument phases) for
    communication. What is missing is said.
    """
    from paceline.analyse.explain import explain
    from paceline.errors import InputError
    from paceline.measurement.probe import current_profile
    from paceline.report.table import Column, Table
    from paceline.report.terminal import print_table, print_waterfall
    from paceline.store import Store, default_store_path

    with Store(store_path or default_store_path(), create=False) as store:
        launches = store.launches(study)
        if not launches:
            known = ", ".join(store.studies()[-5:]) or "none yet"
            raise InputError(f"there is no study named '{study}'", f"studies here: {known}")
        profile = current_profile(store)
    explanation = explain(launches, processes, profile)
    if as_json:
        emit_json(
            "explain",
            1,
            {
                "study": study,
                "processes": explanation.measured.first.world_size,
                "efficiency": explanation.efficiency,
                "measured_step_seconds": explanation.measured.step.mean,
                "ideal_step_seconds": explanation.alone.step.mean,
                "waterfall": [
                    {"label": i.label, "seconds": i.seconds, "kind": str(i.kind), "note": i.note}
                    for i in explanation.waterfall.items
                ],
                "phases_by_rank": [
                    {f"{phase}_seconds": value for phase, value in parts.exposed.items()}
                    for parts in explanation.phases
                ],
                "missing": list(explanation.missing),
            },
        )
        return
    print_waterfall(
        explanation.waterfall,
        f"{explanation.measured.words}: {explanation.efficiency:.0%} of perfect scaling",
    )
    if explanation.phases:
        phases = list(dict.fromkeys(p for parts in explanation.phases for p in parts.exposed))
        print_table(
            Table(
                (Column("rank"), *(Column(str(p), "ms", scale=1e3, decimals=1) for p in phases)),
                tuple(
                    (str(rank), *(parts.exposed.get(p) for p in phases))
                    for rank, parts in enumerate(explanation.phases)
                ),
                note="An instrumented step; communication is what nothing hides, waiting included.",
            )
        )
    for words in explanation.missing:
        click.echo(f"not known: {words}")
    next_line(f"paceline report {study}", "paceline whatif --help")
