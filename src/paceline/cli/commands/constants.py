"""``paceline constants``: constants of the predictor, their sources and effects."""

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from paceline.cli.echo import echo
from paceline.cli.output import emit_json, json_option, next_line, show
from paceline.errors import InputError

if TYPE_CHECKING:
    from paceline.constants import Constant
    from paceline.predictor.sensitivity import Movement

EXAMPLE = """
\b
Examples:
  paceline constants
  paceline constants libraries.nccl --status prior
  paceline constants kernels.matrix.ceiling
"""


@click.command(epilog=EXAMPLE)
@click.argument("name", required=False, metavar="[NAME]")
@click.option(
    "--status",
    type=click.Choice(["fact", "prior", "fitted"]),
    help="List only constants of this status.",
)
@json_option
def command(name: str | None, status: str | None, as_json: bool) -> None:
    """Show the constants of the predictor with unit, status and source.

    NAME is a constant, shown with the effect of a 10 % increase on standard cases, or a prefix
    such as libraries.nccl, which lists the constants below it.
    """
    from paceline.constants import constant, shipped_constants

    constants = shipped_constants()
    below = [one for key, one in constants.items() if name is None or key.startswith(f"{name}.")]
    if name is not None and not below:
        _show(constant(name), as_json)
        return
    listed = [one for one in below if status in (None, one.status)]
    if not listed:
        raise InputError(
            f"{name} has no constants with status {status}", "omit --status to list all"
        )
    _list(listed, as_json)


def _list(listed: "list[Constant]", as_json: bool) -> None:
    if as_json:
        emit_json("constants", 1, {"constants": [asdict(one) for one in listed]})
        return
    from paceline.render.table import Align, Column, Table

    table = Table.of(
        listed,
        (Column("name"), lambda one: one.name),
        (Column("value", align=Align.RIGHT), lambda one: f"{one.value:.6g}"),
        (Column("unit"), lambda one: one.unit),
        (Column("status"), lambda one: one.status.value),
        (Column("source"), lambda one: one.source),
    )
    show([table])
    next_line(f"paceline constants {listed[0].name}")


def _show(one: "Constant", as_json: bool) -> None:
    from paceline.predictor.sensitivity import DEFAULT_FACTOR, movements

    moved = movements(one.name)
    if as_json:
        fields = {
            **asdict(one),
            "factor": DEFAULT_FACTOR,
            "moves": [
                {
                    "case": asdict(each.case),
                    "step_seconds": each.step_seconds,
                    "changed_step_seconds": each.changed_seconds,
                }
                for each in moved
            ],
        }
        emit_json("constant", 1, fields)
        return
    echo(f"{one.name} = {one.value:.6g} {one.unit}")
    for label, text in (("status", one.status), ("source", one.source), ("rows", one.fitted_on)):
        if text:
            echo(f"  {label:<7} {text}")
    echo("")
    _print_movements(moved)
    next_line(f"paceline constants {one.name.rpartition('.')[0]}")


def _print_movements(moved: "list[Movement]") -> None:
    from paceline.render.table import Column, Table

    columns = (
        Column("standard case"),
        Column("step", "ms", 1e3),
        Column("change at +10 %", "%", 100.0, 2, signed=True),
    )
    rows = tuple((each.case.label, each.step_seconds, each.relative_change) for each in moved)
    still = all(each.relative_change == 0 for each in moved)
    note = "No standard case changes." if still else ""
    show([Table(columns, rows, note=note)])
