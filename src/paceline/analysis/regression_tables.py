"""Table and JSON of changes between two studies."""

import math
from collections.abc import Sequence
from typing import Any

from paceline.analysis.regression import TimeChange
from paceline.render.number_format import Ranged
from paceline.render.table import Column, Table
from paceline.stats.power import campaign_false_positives


def changes_table(changes: Sequence[TimeChange]) -> Table:
    """One row per configuration: step times, their ratio, and the verdict.

    The detectable change is a column if it is known for one of them.
    """
    detectable = Column("detectable change", "%", scale=100, decimals=1)
    known = any(not math.isnan(one.detectable) for one in changes)
    return Table.of(
        changes,
        (Column("configuration"), lambda one: one.configuration),
        (Column("base", "ms", scale=1e3), lambda one: Ranged.of(one.base.step)),
        (Column("new", "ms", scale=1e3), lambda one: Ranged.of(one.new.step)),
        (Column("new / base", decimals=3), lambda one: Ranged(one.ratio, one.low, one.high)),
        (Column("p", decimals=4), lambda one: _known(one.corrected_p)),
        *([(detectable, lambda one: _known(one.detectable))] if known else []),
        (Column("verdict"), lambda one: one.verdict),
        note=_note(changes, known),
    )


def campaign_warnings(changes: Sequence[TimeChange]) -> list[str]:
    """Warning if configurations were compared with one campaign each."""
    alone = [one for one in changes if one.campaigns == 0 and not math.isnan(one.p_value)]
    if not alone:
        return []
    which = "" if len(alone) == len(changes) else f" ({len(alone)} of {len(changes)})"
    rate = max(
        campaign_false_positives(len(one.base.launches), len(one.new.launches)) for one in alone
    )
    return [
        f"warning: one campaign each{which}: a regression cannot be distinguished from a different "
        "day, boot or allocation. If campaigns vary as much as launches, equal campaigns are "
        f"reported as different in {100 * rate:.0f} % of cases. With 3 or more other studies of "
        "the same configuration in the store, their variance counts as noise"
    ]


def _note(changes: Sequence[TimeChange], known: bool) -> str:
    tests = ", ".join(dict.fromkeys(one.test for one in changes))
    launches = ", ".join(
        dict.fromkeys(f"{len(one.base.launches)} and {len(one.new.launches)}" for one in changes)
    )
    return (
        f"Step time with 95 % intervals over launches (base and new: {launches}). p: {tests}, "
        "corrected for multiple comparisons (Holm). "
        f"{'Detectable change: found with 80 % power (simulated). ' * known}Same: within "
        f"{100 * changes[0].threshold:g} % by two one-sided tests (TOST)."
    )


def changes_json(changes: Sequence[TimeChange]) -> list[dict[str, Any]]:
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
            "detectable_change": one.detectable,
            "campaigns": one.campaigns,
            "verdict": one.verdict,
        }
        for one in changes
    ]


def _known(number: float) -> float | None:
    return None if math.isnan(number) else number
