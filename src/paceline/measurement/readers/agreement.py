"""Whether the figures of one log agree: every rate that it prints, and what its steps give."""

from collections.abc import Mapping, Sequence

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


def outside_all_steps(log: ParsedLog) -> str | None:
    """A sentence if the throughput that a log prints is slower or faster than any of its steps.

    Printed totals may leave steps out that are timed, so a mean of the steps would not do.
    """
    printed = log.throughput
    said = None if printed is None else _samples_per_second(log, printed)
    records = [one for one in log.steps if not one.warm_up] or log.steps
    if printed is None or said is None or not log.global_batch or not records:
        return None
    rates = [(one.samples or log.global_batch) / one.seconds for one in records]
    slowest, fastest = min(rates), max(rates)
    if slowest <= said <= fastest or agree(said, slowest) or agree(said, fastest):
        return None
    span = f"{slowest:,.4g}" if agree(slowest, fastest) else f"{slowest:,.4g} to {fastest:,.4g}"
    return f"{printed.source}: {said:,.4g} samples/s, but the steps give {span}"


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


def devices(rates: Mapping[str, Sequence[tuple[float, float]]], name: str) -> int | None:
    """How many devices there are, by the rates of the job and of each (``name`` + ``_each``)."""
    job, each = mean_rate(rates.get(name, ())), mean_rate(rates.get(f"{name}_each", ()))
    number = round(job / each) if job and each else 0
    return number if job and each and number and agree(job, number * each) else None
