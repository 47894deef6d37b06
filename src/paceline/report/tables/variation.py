"""Variation by launch, rank and step, and laws of scaling, as tables."""

from collections.abc import Sequence

from paceline.analyse.variation import Variation
from paceline.report.numbers import Ranged
from paceline.report.table import Column, Table
from paceline.statistics.laws import FittedLaw


def variation_table(found: Sequence[Variation]) -> Table:
    """One row per configuration: shares of variance, and the best use of the time it took."""

    def share(place: int) -> Column:
        return Column(("launches", "ranks", "steps")[place], "%", scale=100, decimals=0)

    return Table.of(
        found,
        (Column("configuration"), lambda one: one.group.words),
        (share(0), lambda one: one.components.shares[0]),
        (share(1), lambda one: one.components.shares[1]),
        (share(2), lambda one: one.components.shares[2]),
        (Column("time", "s", decimals=0), lambda one: one.available_seconds),
        (Column("best steps", decimals=0), lambda one: one.best.steps),
        (Column("best launches", decimals=0), lambda one: one.best.launches),
        (Column("error", "%", scale=100, decimals=2), lambda one: one.best.relative_error),
        title="Where variation arises",
        note="Shares of the variance of a step between launches, ranks of a launch and steps. "
        "Best: counted steps of a launch, and launches, that would have given the most precise "
        "mean in the same time, and its standard error then.",
    )


def law_table(laws: Sequence[FittedLaw]) -> Table:
    """One row per term of each law, the best law first."""
    rows = [(law, term) for law in laws for term in law.seconds]
    base = 1e3 * laws[0].base_seconds
    return Table.of(
        rows,
        (Column("law"), lambda row: row[0].law.name),
        (Column("term"), lambda row: row[1]),
        (
            Column("seconds", "ms", scale=1e3),
            lambda row: Ranged(row[0].seconds[row[1]], *row[0].intervals[row[1]]),
        ),
        (Column("off by", "%", scale=100, decimals=1), lambda row: row[0].relative_error),
        title="Laws of weak scaling",
        note="Terms of the step of p processes: Gustafson step + (p - 1) serial, ring step + "
        "bandwidth (p - 1) / p + latency (p - 1), tree step + rounds log2 p; 95 % intervals by "
        f"drawing launches anew. Base: one process, {base:.4g} ms. The best law comes first.",
    )
