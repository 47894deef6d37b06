"""Parts of a study's page about its factors, its configurations and the spread of their steps."""

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

from paceline.analyse.effects import StudyEffects
from paceline.analyse.groups import LaunchGroup
from paceline.analyse.statistics import step_seconds
from paceline.analyse.variation import fitted_laws, variation_of
from paceline.report.figures import BarSeries, BarsInfo, figure
from paceline.report.numbers import Ranged
from paceline.report.page import Figure, Section
from paceline.report.table import Column, Table
from paceline.report.tables.effects import effects_tables
from paceline.report.tables.variation import law_table, variation_table
from paceline.statistics.series import StepSpread, step_spread

MOST_FIGURES = 3
UNCONTROLLED = (
    "other programs on the machine",
    "clock frequency and temperature of the processor",
    "placement of memory",
    "files in the cache",
)
"""What a study leaves to chance; each launch keeps what is known of it."""


def factors_section(effects: StudyEffects) -> Section:
    """Effects, allocation of variation, analysis of variance, and the largest interactions."""
    shares = {row.term: row.share for row in effects.variance.rows}
    pairs = sorted(combinations(effects.levels, 2), key=lambda pair: -shares.get(pair, 0.0))
    return Section(
        "Factors",
        text="What each factor does to the seconds per sample, and how much of all variation it "
        "explains.",
        tables=effects_tables(effects),
        figures=[_interaction(effects, *pair) for pair in pairs[:MOST_FIGURES]],
        warnings=effects.variance.checks.words,
        notes=[f"Left to chance: {', '.join(UNCONTROLLED)}."],
    )


def _interaction(effects: StudyEffects, first: str, second: str) -> Figure:
    """Seconds per sample by the levels of two factors, the mean over all others."""
    names = list(effects.levels)
    places = names.index(first), names.index(second)

    def mean(level: Any, other: Any) -> Ranged | None:
        own = [
            math.log(seconds)
            for key, seconds in effects.cells.items()
            if (key[places[0]], key[places[1]]) == (level, other)
        ]
        return Ranged(1e3 * math.exp(math.fsum(own) / len(own))) if own else None

    series = tuple(
        BarSeries(f"{second} {other}", tuple(mean(level, other) for level in effects.levels[first]))
        for other in effects.levels[second]
    )
    groups = tuple(f"{first} {level}" for level in effects.levels[first])
    info = BarsInfo("time per sample (ms)", groups, series, "ms")
    return figure(
        f"{first} and {second}",
        info,
        "Geometric means over all other factors. Without interaction, the bars of each group "
        "stand in the same ratio.",
    )


def statistics_tables(plain: Sequence[LaunchGroup]) -> list[Table]:
    """Spread of steps, where variation arises, and laws of scaling, as far as launches tell."""
    if not plain:
        return []
    tables = [spread_table(plain)]
    variations = [found for group in plain if (found := variation_of(group)) is not None]
    tables += [variation_table(variations)] if variations else []
    laws = fitted_laws(plain)
    return tables + ([law_table(laws)] if laws else [])


def spread_table(groups: Sequence[LaunchGroup]) -> Table:
    """Quantiles of the steps of each configuration, and what the slowest ones cost."""
    rows = [(group, _spread(group)) for group in groups]
    return Table.of(
        rows,
        (Column("configuration"), lambda row: row[0].words),
        (Column("steps", decimals=0), lambda row: row[1].steps),
        (Column("median", "ms", scale=1e3), lambda row: row[1].median),
        (Column("p95", "ms", scale=1e3), lambda row: row[1].p95),
        (Column("p99", "ms", scale=1e3), lambda row: row[1].p99),
        (Column("slowest 1 %", "% of time", scale=100, decimals=1), lambda row: row[1].tail_share),
        (Column("independent", decimals=0), lambda row: row[1].effective_steps),
        title="Steps",
        note="Counted steps of all launches, on the slowest process of each. Independent: as many "
        "steps that do not follow each other would tell a mean as well.",
    )


def _spread(group: LaunchGroup) -> StepSpread:
    """The spread of all steps; those that count as independent are summed over launches."""
    launches = [step_seconds(launch) for launch in group.launches]
    together = step_spread([value for own in launches for value in own])
    effective = math.fsum(step_spread(own).effective_steps for own in launches)
    return StepSpread(**{**vars(together), "effective_steps": effective})
