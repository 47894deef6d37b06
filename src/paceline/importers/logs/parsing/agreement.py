"""Consistency of one log: printed rates against rates computed from its steps."""

import math
from collections.abc import Mapping, Sequence

from paceline.importers.logs.parsing.parsed_log import ParsedLog, Rate, RateScope, RateUnit

AGREES_WITHIN = 0.05
"""Relative difference up to which two rates of one log agree."""


def agree(one: float, other: float, rounding: float = 0.0) -> bool:
    """Whether two rates agree within `AGREES_WITHIN` plus ``rounding``."""
    return abs(one - other) <= AGREES_WITHIN * max(abs(one), abs(other)) + rounding


def disagreements(
    log: ParsedLog, printed: Sequence[Rate], step_rounding_seconds: float = 0.0
) -> list[str]:
    """One message per printed rate that disagrees with the throughput of the log.

    ``step_rounding_seconds`` is half a unit in the last digit of the printed step times.
    """
    if log.throughput is None:
        return []
    messages = []
    for rate in printed:
        found = _samples_per_second(log, log.throughput)
        printed_rate = _samples_per_second(log, rate)
        if log.throughput.unit is rate.unit is RateUnit.STEPS:
            found, printed_rate = log.throughput.per_second, rate.per_second
        if found is None or printed_rate is None:
            continue
        rounding = printed_rate * rate.rounding_per_second / rate.per_second
        rounding += found * step_rounding_seconds / (log.step_seconds or math.inf)
        if not agree(found, printed_rate, rounding):
            messages.append(
                f"{rate.source}: {rate.per_second:,.4g} {rate.unit}/s ({rate.scope}), but "
                f"{log.throughput.source} gives {found / printed_rate:.3g} times that"
            )
    return messages


def outside_all_steps(log: ParsedLog) -> str | None:
    """A message if the printed throughput is outside the range of all steps.

    Printed totals may exclude some timed steps, so the mean step is no reference for them.
    """
    printed = log.throughput
    rate = None if printed is None else _samples_per_second(log, printed)
    records = [step for step in log.steps if not step.warm_up] or log.steps
    if printed is None or rate is None or not log.global_batch or not records:
        return None
    rates = [(record.samples or log.global_batch) / record.seconds for record in records]
    slowest, fastest = min(rates), max(rates)
    if slowest <= rate <= fastest or agree(rate, slowest) or agree(rate, fastest):
        return None
    span = f"{slowest:,.4g}" if agree(slowest, fastest) else f"{slowest:,.4g} to {fastest:,.4g}"
    return f"{printed.source}: {rate:,.4g} samples/s, but the step times give {span}"


def _samples_per_second(log: ParsedLog, rate: Rate) -> float | None:
    """A rate converted to samples per second of the job; None if the log lacks a factor."""
    value = rate.per_second
    if rate.unit is RateUnit.STEPS:
        return None if log.global_batch is None else value * log.global_batch
    if rate.scope is RateScope.PER_DEVICE:
        if not log.ranks:
            return None
        value *= log.ranks
    if rate.unit is RateUnit.TOKENS:
        return None if not log.sequence_length else value / log.sequence_length
    return value


def mean_rate(amounts: Sequence[tuple[float, float]]) -> float | None:
    """Mean rate of (amount, rate) pairs: total amount divided by total time."""
    seconds = sum(amount / rate for amount, rate in amounts)
    return sum(amount for amount, _ in amounts) / seconds if seconds > 0 else None


def devices(rates: Mapping[str, Sequence[tuple[float, float]]], name: str) -> int | None:
    """Number of devices: rate of the job (``name``) divided by rate per device (``name_each``)."""
    job, each = mean_rate(rates.get(name, ())), mean_rate(rates.get(f"{name}_each", ()))
    number = round(job / each) if job and each else 0
    return number if job and each and number and agree(job, number * each) else None
