"""Calibrates the width of intervals with errors of held-out rows."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from paceline.predictor.uncertainty.correction_model import (
    COLD,
    KNOWN_WORK,
    CorrectionModel,
    ErrorRule,
)
from paceline.predictor.uncertainty.mixed_effects import Hierarchy
from paceline.predictor.uncertainty.quantities import BANDWIDTH
from paceline.validation.hold_out import PROTOCOLS, HoldOut, level_of, predicted_longer
from paceline.validation.published_job import job_of
from paceline.validation.published_row import PublishedRow
from paceline.validation.refit.linear_problem import Problem
from paceline.validation.refit.linearise import Statement
from paceline.validation.refit.statements import quantities_of

_LOW, _HIGH = 0.05, 0.95
_FEWEST_SOURCES = 3
"""Least number of sources for a separate rule of a kind of work."""


@dataclass(frozen=True, slots=True)
class LeftOutError:
    """log(measured / predicted throughput) of a held-out row, and its standard deviation."""

    error: float
    deviation: float
    source: str
    kind: str
    protocol: HoldOut


def calibrated(
    model: CorrectionModel,
    paired: Sequence[Statement],
    alone: Sequence[Statement],
    rows: Sequence[PublishedRow],
    say: Callable[[str], None] = lambda text: None,
) -> CorrectionModel:
    """The model with quantiles of the errors of held-out rows, by mode."""
    rules = {}
    for mode, statements in ((KNOWN_WORK, paired), (COLD, alone)):
        say(f"{mode}: errors of rows that were left out")
        errors = left_out_errors(model, statements, rows, mode)
        rules[mode] = error_rule(model.rules[mode].noise, errors)
        for kind in sorted({each.kind for each in errors}):
            own = [each for each in errors if each.kind == kind]
            if len({each.source for each in own}) >= _FEWEST_SOURCES:
                rules[f"{mode}-{kind}"] = error_rule(model.rules[mode].noise, own)
    return replace(model, rules=rules)


def left_out_errors(
    model: CorrectionModel, statements: Sequence[Statement], rows: Sequence[PublishedRow], mode: str
) -> list[LeftOutError]:
    """Errors of every row under every protocol that applies to it."""
    return [error for _, error in left_out_rows(model, statements, rows, mode)]


def left_out_rows(
    model: CorrectionModel, statements: Sequence[Statement], rows: Sequence[PublishedRow], mode: str
) -> list[tuple[str, LeftOutError]]:
    """The same with the id of each row."""
    by_id = {row.configuration.id: row.configuration for row in rows}
    noise = model.rules[mode].noise
    quantities = quantities_of(mode == KNOWN_WORK)
    configurations = [by_id[each.id] for each in statements]
    problem = Problem(quantities, configurations, statements, model.hierarchies, noise)
    found = []
    for protocol in PROTOCOLS:
        levels = [level_of(row, protocol) for row in configurations]
        for level in sorted(set(levels) - {""}):
            longer = np.zeros(len(levels))
            if mode == COLD:
                longer = predicted_longer(configurations, protocol, level)
            fitted = problem.without(lambda row: level_of(row, protocol) == level, longer)  # noqa: B023
            found += [
                (
                    problem.statements[number].id,
                    _error(problem, number, fitted, noise, protocol, float(longer[number])),
                )
                for number, own in enumerate(levels)
                if own == level
            ]
    return found


def _error(
    problem: Problem,
    number: int,
    fitted: dict[str, Hierarchy],
    noise: float,
    protocol: HoldOut,
    longer: float,
) -> LeftOutError:
    """A row's error and standard deviation, in linear form.

    Its predicted step is ``longer`` by that much than it was there, as a logarithm.
    """
    statement, row = problem.statements[number], problem.rows[number]
    spread = job_of(row).cluster.bandwidth_spread
    log_step, variance = 0.0, noise**2
    for name, slope in statement.slopes.items():
        value, own = fitted[name].estimate(problem.covariates[number])
        log_step += slope * value
        assumed = spread**2 if name == BANDWIDTH.name else 0.0
        variance += slope**2 * (own + assumed)
    # A step that took longer than predicted is a throughput below the predicted one.
    error = log_step + longer - statement.response
    kind = problem.covariates[number].kind
    return LeftOutError(error, float(np.sqrt(variance)), row.family, kind, protocol)


def error_rule(noise: float, errors: Sequence[LeftOutError]) -> ErrorRule:
    """Quantiles of standardised errors, with equal weight per protocol and source."""
    counts = Counter((each.protocol, each.source) for each in errors)
    scaled = np.array([each.error / each.deviation for each in errors])
    weights = np.array([1.0 / counts[each.protocol, each.source] for each in errors])
    order = np.argsort(scaled)
    middles = (np.cumsum(weights[order]) - 0.5 * weights[order]) / weights.sum()
    low, high = np.interp([_LOW, _HIGH], middles, scaled[order])
    return ErrorRule(noise, float(min(low, 0.0)), float(max(high, 0.0)))
