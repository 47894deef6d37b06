"""Changes between two studies as a table and as JSON."""

import math
from collections.abc import Sequence
from typing import Any

from paceline.analyse.regression import TimeChange
from paceline.report.numbers import Ranged
from paceline.report.table import Column, Table


def changes_table(changes: Sequence[TimeChange]) -> Table:
    """One row per configuration: seconds before and after, their ratio, and the verdict."""
    return Table.of(
        changes,
        (Column("configuration"), lambda one: one.configuration),
        (Column("base", "ms", scale=1e3), lambda one: Ranged.of(one.base.step)),
        (Column("new", "ms", scale=1e3), lambda one: Ranged.of(one.new.step)),
        (Column("new / base", decimals=3), lambda one: Ranged(one.ratio, one.low, one.high)),
        (Column("p", decimals=4), lambda one: _known(one.corrected_p)),
        (Column("would see", "%", scale=100, decimals=1), lambda one: _known(one.smallest)),
        (Column("verdict"), lambda one: one.verdict),
        note=_note(changes),
    )


def _note(changes: Sequence[TimeChange]) -> str:
    tests = ", ".join(dict.fromkeys(one.test for one in changes))
    launches = ", ".join(
        dict.fromkeys(f"{len(one.base.launches)} and {len(one.new.launches)}" for one in changes)
    )
    return (
        f"Seconds of a step with 95 % intervals over launches ({launches}). p: {tests}, corrected "
        "for several (Holm). Would see: the smallest change seen in 8 of 10 cases. Same: within "
        f"{100 * changes[0].threshold:g} % by two one-sided tests."
    )


def changes_json(changes: Sequence[TimeChange]) -> list[dict[str, Any]]:
    """The same as JSON values."""
    return [
        {
            "configuration": one.configuration,
            "base_step_seconds": one.base.step.mean,
            "new_step_seconds": one.new.step.mean,
            "base_launches": len(one.base.launches),
            "new_launches": len(one.new.launches),
            "ratio": one.ratio,
            "ratio_low": one.low,
            "ratio_high": one.high,
            "test": one.test,
            "p_value": one.p_value,
            "corrected_p_value": one.corrected_p,
            "same_p_value": one.same_p,
            "smallest_visible_change": one.smallest,
            "sessions": one.sessions,
            "verdict": one.verdict,
        }
        for one in changes
    ]


def _known(number: float) -> float | None:
    return None if math.isnan(number) else number
