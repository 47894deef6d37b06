"""Whether the figures of one log agree: every rate that it prints, and what its steps give."""

from collections.abc import Sequence

from paceline.measurement.readers.parsed_log import ParsedLog, Rate, RateScope, RateUnit

AGREES_WITHIN = 0.05
"""Part by which two rates of one log may differ."""


def agree(one: float, other: float) -> bool:
    """Whether two rates are the same within `AGREES_WITHIN`."""
    return abs(one - other) <= AGREES_WITHIN * max(abs(one), abs(other))


def disagreements(log: ParsedLog, printed: Sequence[Rate]) -> list[str]:
    """A sentence for each kind of printed rate that contradicts the log's throughput."""
    if log.throughput is None:
        return []
    messages = []
    for rate in printed:
        found, said = _samples_per_second(log, log.throughput), _samples_per_second(log, rate)
        if log.throughput.unit is rate.unit is RateUnit.STEPS:
            found, said = log.throughput.per_second, rate.per_second
        if found is not None and said is not None and not agree(found, said):
            messages.append(
                f"{rate.source}: {rate.per_second:,.4g} {rate.unit}/s ({rate.scope}), but "
                f"{log.throughput.source} gives {found / said:.3g} times as much"
            )
    return messages


def _samples_per_second(log: ParsedLog, rate: Rate) -> float | None:
    """The whole job's samples per second that a rate means; None where the log lacks a number."""
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
    """Amount per second of (amount, rate) pairs: all of it over all the time it took."""
    seconds = sum(amount / rate for amount, rate in amounts)
    return sum(amount for amount, _ in amounts) / seconds if seconds > 0 else None
