"""Samples of MLPerf training intervals: logs count samples, tokens, iterations or epochs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from paceline.importers.logs.parsing.agreement import agree

LARGEST_EPOCH_NUMBER = 1000
"""An "epoch" number above this counts samples or tokens, as in the language benchmarks."""

SHORTEST_STEP_SECONDS = 1e-3
"""Lower limit of the step time of all MLPerf benchmarks."""


@dataclass(frozen=True, slots=True)
class TrainingInterval:
    """A training interval; ``epochs`` is the logged count, which may be samples or tokens."""

    seconds: float
    epochs: float
    samples_count: float | None = None
    global_batch: float | None = None


@dataclass
class SampleCounts:
    """Counts of a log from which samples per second follow.

    ``progress`` lists (seconds, samples) of events with a count; it includes evaluation.
    """

    samples_per_epoch: float | None = None
    intervals: list[TrainingInterval] = field(default_factory=list)
    progress: list[tuple[float, float]] = field(default_factory=list)

    def readings(self, sequence: int | None) -> dict[str, list[tuple[float, float]]]:
        """Samples and seconds of each interval by interpretation, the most reliable first."""
        readings: dict[str, list[tuple[float, float]]] = {}
        known = self.intervals
        if known and all(reading.samples_count for reading in known):
            readings["samples_count"] = [
                (reading.samples_count or 0.0, reading.seconds) for reading in known
            ]
        if known and all(reading.epochs > LARGEST_EPOCH_NUMBER for reading in known):
            readings["epoch_count as samples"] = [
                (reading.epochs, reading.seconds) for reading in known
            ]
        elif known and self.samples_per_epoch:
            each = self.samples_per_epoch
            readings["epochs of train_samples"] = [
                (reading.epochs * each, reading.seconds) for reading in known
            ]
        if sequence and sequence > 1:
            for name, pairs in list(readings.items()):
                if name != "epochs of train_samples":
                    tokens = [(amount / sequence, seconds) for amount, seconds in pairs]
                    readings[f"{name.split(' as ')[0]} as tokens"] = tokens
        if not known and len(self.progress) > 1:
            (begun, first), (ended, last) = self.progress[0], self.progress[-1]
            if last > first and ended > begun:
                readings["samples counted between events"] = [(last - first, ended - begun)]
        return readings


def chosen_reading(
    readings: dict[str, list[tuple[float, float]]],
    printed: Sequence[float],
    global_batch: float | None,
    ranks: int | None,
) -> tuple[str, str]:
    """The interpretation that the log supports, or a message why there is none.

    It must agree with a printed rate of the job or of one device; if no rate is printed, it must
    be the only interpretation with a plausible step time.
    """
    rates = {
        name: _rate(pairs) for name, pairs in readings.items() if _holds_steps(pairs, global_batch)
    }
    if not rates:
        return "", "under every interpretation, training intervals are shorter than one step"
    if printed:
        expected = [rate * times for rate in printed for times in {1, ranks or 1}]
        for name, rate in rates.items():
            if any(agree(rate, other) for other in expected):
                return name, ""
        return "", (
            f"the log prints {printed[-1]:,.4g} samples/s, but its intervals give {_listed(rates)}"
        )
    possible = {
        name: rate
        for name, rate in rates.items()
        if global_batch is None or global_batch / rate >= SHORTEST_STEP_SECONDS
    }
    if len(possible) == 1 or "samples_count" in possible:
        names = [name for name in possible if name == "samples_count"] or list(possible)
        others = [rate for name, rate in possible.items() if name != names[0]]
        if not others or names[0] == "samples_count":
            return names[0], ""
    return "", f"ambiguous sample counts; samples/s could be {_listed(rates)}"


def _listed(rates: Mapping[str, float]) -> str:
    return ", ".join(f"{rate:,.4g} ({name})" for name, rate in rates.items())


def _holds_steps(pairs: Sequence[tuple[float, float]], global_batch: float | None) -> bool:
    """Whether intervals contain at least one step of the global batch on average."""
    amount = sum(amount for amount, _ in pairs)
    return global_batch is None or amount >= 0.9 * global_batch * len(pairs)


def _rate(pairs: Sequence[tuple[float, float]]) -> float:
    return sum(amount for amount, _ in pairs) / sum(seconds for _, seconds in pairs)
