"""Tables of variance by launch, rank and step, and of scaling laws."""

from collections.abc import Sequence

from paceline.analysis.variation import Variation
from paceline.render.number_format import Ranged
from paceline.render.table import Column, Table
from paceline.stats.laws import FittedLaw


def variation_table(found: Sequence[Variation]) -> Table:
    """One row per configuration: shares of variance, and the optimal repetition."""

    def share(level: int) -> Column:
        return Column(("launches", "ranks", "steps")[level], "%", scale=100, decimals=0)

    return Table.of(
        found,
        (Column("configuration"), lambda one: one.group.description),
        (share(0), lambda one: one.components.shares[0]),
        (share(1), lambda one: one.components.shares[1]),
        (share(2), lambda one: one.components.shares[2]),
        (Column("time", "s", decimals=0), lambda one: one.available_seconds),
        (Column("optimal steps", decimals=0), lambda one: one.best.steps),
        (Column("optimal launches", decimals=0), lambda one: one.best.launches),
        (Column("standard error", "%", scale=100, decimals=2), lambda one: one.best.relative_error),
        title="Sources of variance",
        note="Shares of the variance of step time between launches, between ranks of a launch and "
        "between steps. Optimal: counted steps per launch and number of launches that give the "
        "most precise mean in the same total time, with the standard error of that mean.",
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
        (Column("error", "%", scale=100, decimals=1), lambda row: row[0].relative_error),
        title="Weak-scaling laws",
        note="Terms of the step of p processes: Gustafson step + (p - 1) serial, ring step + "
        "bandwidth (p - 1) / p + latency (p - 1), tree step + rounds log2 p; 95 % intervals by "
        f"resampling launches. Base: one process, {base:.4g} ms. Best law first.",
    )
