"""Constants of the predictor as lists, and one constant with its effect on standard cases."""

from collections.abc import Sequence
from dataclasses import asdict

from paceline.catalog.listing import Listing
from paceline.constants import Constant
from paceline.predictor.sensitivity import DEFAULT_FACTOR, Movement, movements
from paceline.render.table import Align, Column, Table


def constant_list(constants: Sequence[Constant]) -> Listing:
    """Constants with value, unit, status and source."""
    table = Table.of(
        constants,
        (Column("name"), lambda one: one.name),
        (Column("value", align=Align.RIGHT), lambda one: f"{one.value:.6g}"),
        (Column("unit"), lambda one: one.unit),
        (Column("status"), lambda one: one.status.value),
        (Column("source"), lambda one: one.source),
    )
    further = (f"paceline catalog constants {constants[0].name}",)
    return Listing("constants", tuple(map(asdict, constants)), (table,), further)


def constant_entry(one: Constant) -> Listing:
    """One constant, and the change of standard cases when it increases by 10 %."""
    moved = movements(one.name)
    moves = [
        {
            "case": asdict(each.case),
            "step_seconds": each.step_seconds,
            "changed_step_seconds": each.changed_seconds,
        }
        for each in moved
    ]
    facts = (("status", one.status), ("source", one.source), ("rows", one.fitted_on))
    lines = [f"  {label:<7} {text}" for label, text in facts if text]
    head = f"{one.name} = {one.value:.6g} {one.unit}"
    return Listing(
        "constants",
        ({**asdict(one), "factor": DEFAULT_FACTOR, "moves": moves},),
        (head, *lines, "", _movement_table(moved)),
        (f"paceline catalog constants {one.name.rpartition('.')[0]}",),
    )


def _movement_table(moved: Sequence[Movement]) -> Table:
    still = all(each.relative_change == 0 for each in moved)
    return Table.of(
        moved,
        (Column("standard case"), lambda each: each.case.label),
        (Column("step", "ms", 1e3), lambda each: each.step_seconds),
        (
            Column("change at +10 %", "%", 100.0, 2, signed=True),
            lambda each: each.relative_change,
        ),
        note="No standard case changes." if still else "",
    )
