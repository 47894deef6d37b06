"""Tables of the effects of factors and of their shares of variation."""

import math

from paceline.analysis.effects import StudyEffects
from paceline.render.number_format import Ranged
from paceline.render.table import Align, Column, Table
from paceline.stats.factorial import Effect


def effects_tables(effects: StudyEffects) -> list[Table]:
    """Analysis of variance and, for two-level designs, effects with their intervals."""
    tables = [variance_table(effects)]
    if effects.two_level is not None:
        tables.insert(0, two_level_table(effects))
    return tables


def two_level_table(effects: StudyEffects) -> Table:
    """Each effect as a ratio of seconds per sample, with its share of variation."""
    found = effects.two_level
    assert found is not None
    changes = {name: f"{own[0]} to {own[1]}" for name, own in effects.levels.items()}

    def change(effect: Effect) -> str:
        return changes[effect.factors[0]] if len(effect.factors) == 1 else "interaction"

    return Table.of(
        [effect for effect in found.effects if effect.factors],
        (Column("effect"), lambda one: one.name),
        (Column("change"), change),
        (Column("ratio", decimals=3), lambda one: _ratio(one)),
        (Column("share of variation", "%", scale=100, decimals=1), lambda one: one.share),
        (Column("significant"), lambda one: "yes" if one.is_clear else "no"),
        title="Effects on seconds per sample",
        note="Ratio: seconds per sample at the second level over the first, with its 95 % "
        f"interval. Error: {100 * found.error_share:.1f} % of the variation.",
    )


def variance_table(effects: StudyEffects) -> Table:
    """Analysis of variance of the logarithm of seconds per sample."""
    found = effects.variance
    wrong = "; ".join(found.checks.warnings)
    plots = (
        f"Whole plots: {found.plot_degrees} degrees of freedom, the error of the factor that the "
        "order was blocked by. "
        if found.plot_degrees
        else ""
    )
    shares = math.fsum(row.share for row in found.rows) + found.error_share
    unequal = (
        "Sums of squares of type II: with unequal numbers of launches the shares do not add up to "
        "100 %. "
        if not plots and abs(shares - 1.0) > 0.005
        else ""
    )
    return Table.of(
        found.rows,
        (Column("term"), lambda row: row.name),
        (Column("df", decimals=0), lambda row: row.degrees),
        (Column("sum of squares", decimals=5), lambda row: row.squares),
        (Column("share of variation", "%", scale=100, decimals=1), lambda row: row.share),
        (Column("F", decimals=2), lambda row: _known(row.f_ratio)),
        (Column("p", align=Align.RIGHT), lambda row: format_p_value(row.p_value)),
        title="Analysis of variance (logarithm of seconds per sample)",
        note=f"Error: {found.error_degrees} degrees of freedom, {100 * found.error_share:.1f} % of "
        f"the variation. {plots}{unequal}Residuals: "
        f"{wrong or 'no assumption of the model rejected'}.",
    )


def _ratio(effect: Effect) -> Ranged:
    low, high = (math.exp(2 * bound) for bound in (effect.low, effect.high))
    return Ranged(math.exp(2 * effect.value), low, high)


def format_p_value(value: float) -> str | None:
    """A p-value with four decimals; smaller ones as a bound, because they are never zero."""
    if math.isnan(value):
        return None
    return f"{value:.4f}" if value >= 0.0001 else "< 0.0001"


def _known(number: float) -> float | None:
    return None if math.isnan(number) else number
