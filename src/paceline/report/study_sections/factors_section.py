"""Sections about factors, configurations and the distribution of their steps."""

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

from paceline.analysis.configurations import LaunchGroup
from paceline.analysis.effect_tables import effects_tables
from paceline.analysis.effects import StudyEffects
from paceline.analysis.launch_statistics import step_seconds
from paceline.analysis.variation import fitted_laws, variation_of
from paceline.analysis.variation_tables import law_table, variation_table
from paceline.render.figures import BarSeries, BarsInfo, figure
from paceline.render.html_page import Figure, Section
from paceline.render.number_format import Ranged
from paceline.render.table import Column, Table
from paceline.stats.step_statistics import StepSpread, step_spread

MOST_FIGURES = 3
UNCONTROLLED = (
    "other programs on the machine",
    "clock frequency and temperature of the processor",
    "memory placement",
    "page cache",
)
"""Conditions that a study does not control; each launch records them as far as possible."""


def factors_section(effects: StudyEffects) -> Section:
    """Effects, allocation of variation, ANOVA, and the largest interactions."""
    shares = {row.term: row.share for row in effects.variance.rows}
    pairs = sorted(combinations(effects.levels, 2), key=lambda pair: -shares.get(pair, 0.0))
    return Section(
        "Factors",
        text="Effect of each factor on the seconds per sample, and its share of the variation.",
        tables=effects_tables(effects),
        figures=[_interaction(effects, *pair) for pair in pairs[:MOST_FIGURES]],
        warnings=effects.variance.checks.warnings,
        notes=[f"Not controlled: {', '.join(UNCONTROLLED)}."],
    )


def _interaction(effects: StudyEffects, first: str, second: str) -> Figure:
    """Seconds per sample by the levels of two factors, averaged over all others."""
    names = list(effects.levels)
    positions = names.index(first), names.index(second)

    def mean(level: Any, other: Any) -> Ranged | None:
        own = [
            math.log(seconds)
            for key, seconds in effects.cells.items()
            if (key[positions[0]], key[positions[1]]) == (level, other)
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
        "Geometric means over all other factors. Without interaction, the bars have the same "
        "ratio in each group.",
    )


def statistics_tables(plain: Sequence[LaunchGroup]) -> list[Table]:
    """Distribution of steps, sources of variance and scaling laws, as far as launches allow."""
    if not plain:
        return []
    tables = [spread_table(plain)]
    variations = [found for group in plain if (found := variation_of(group)) is not None]
    tables += [variation_table(variations)] if variations else []
    laws = fitted_laws(plain)
    return tables + ([law_table(laws)] if laws else [])


def spread_table(groups: Sequence[LaunchGroup]) -> Table:
    """Quantiles of the steps of each configuration, and the share of the slowest ones."""
    rows = [(group, _spread(group)) for group in groups]
    return Table.of(
        rows,
        (Column("configuration"), lambda row: row[0].description),
        (Column("steps", decimals=0), lambda row: row[1].steps),
        (Column("median", "ms", scale=1e3), lambda row: row[1].median),
        (Column("p95", "ms", scale=1e3), lambda row: row[1].p95),
        (Column("p99", "ms", scale=1e3), lambda row: row[1].p99),
        (Column("slowest 1 %", "% of time", scale=100, decimals=1), lambda row: row[1].tail_share),
        (Column("effective", decimals=0), lambda row: row[1].effective_steps),
        title="Distribution of steps",
        note="Steps of all launches after warm-up, on the slowest process of each. Effective: the "
        "effective sample size, the number of independent steps with the same standard error.",
    )


def _spread(group: LaunchGroup) -> StepSpread:
    """The distribution of all steps; effective sample sizes are summed over launches."""
    launches = [step_seconds(launch) for launch in group.launches]
    together = step_spread([value for own in launches for value in own])
    effective = math.fsum(step_spread(own).effective_steps for own in launches)
    return StepSpread(**{**vars(together), "effective_steps": effective})
