"""How many samples MLPerf's intervals hold: logs count samples, tokens, iterations or epochs."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from paceline.measurement.readers.agreement import agree

LARGEST_EPOCH_NUMBER = 1000
"""An "epoch" number above this counts samples or tokens, as the language benchmarks do."""

SHORTEST_STEP_SECONDS = 1e-3
"""No benchmark of MLPerf does a step of its global batch faster."""


@dataclass(frozen=True, slots=True)
class TrainingInterval:
    """A stretch of training: its seconds, its epochs or what is called so, samples and batch."""

    seconds: float
    epochs: float
    samples_count: float | None = None
    global_batch: float | None = None


@dataclass
class SampleCounts:
    """What a log says about its samples, from which their number per second follows.

    ``progress`` are (seconds, samples) at events that name a count; they include evaluation.
    """

    samples_per_epoch: float | None = None
    intervals: list[TrainingInterval] = field(default_factory=list)
    progress: list[tuple[float, float]] = field(default_factory=list)

    def readings(self, sequence: int | None) -> dict[str, list[tuple[float, float]]]:
        """Samples and seconds of each interval, by how the log may be meant; surest first."""
        meant: dict[str, list[tuple[float, float]]] = {}
        known = self.intervals
        if known and all(one.samples_count for one in known):
            meant["samples_count"] = [(one.samples_count or 0.0, one.seconds) for one in known]
        if known and all(one.epochs > LARGEST_EPOCH_NUMBER for one in known):
            meant["epoch_count as samples"] = [(one.epochs, one.seconds) for one in known]
        elif known and self.samples_per_epoch:
            each = self.samples_per_epoch
            meant["epochs of train_samples"] = [(one.epochs * each, one.seconds) for one in known]
        if sequence and sequence > 1:
            for name, pairs in list(meant.items()):
                if name != "epochs of train_samples":
                    tokens = [(amount / sequence, seconds) for amount, seconds in pairs]
                    meant[f"{name.split(' as ')[0]} as tokens"] = tokens
        if not known and len(self.progress) > 1:
            (begun, first), (ended, last) = self.progress[0], self.progress[-1]
            if last > first and ended > begun:
                meant["samples counted between events"] = [(last - first, ended - begun)]
        return meant


def chosen_reading(
    readings: dict[str, list[tuple[float, float]]],
    printed: Sequence[float],
    global_batch: float | None,
    ranks: int | None,
) -> tuple[str, str]:
    """The reading that the log supports, and else why there is none.

    A reading is right when it agrees with a rate that the log prints, of the job or of each
    device; without one, when it is the only one that gives steps of a possible length.
    """
    rates = {
        name: _rate(pairs) for name, pairs in readings.items() if _holds_steps(pairs, global_batch)
    }
    if not rates:
        return "", "its training intervals would hold less than a step each, however they are read"
    if printed:
        meant = [rate * times for rate in printed for times in {1, ranks or 1}]
        for name, rate in rates.items():
            if any(agree(rate, other) for other in meant):
                return name, ""
        told = ", ".join(f"{rate:,.4g} by {name}" for name, rate in rates.items())
        return "", f"the log prints {printed[-1]:,.4g} samples/s, but its intervals give {told}"
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
    told = ", ".join(f"{rate:,.4g} by {name}" for name, rate in rates.items())
    return "", f"nothing in the log says which samples/s is meant: {told}"


def _holds_steps(pairs: Sequence[tuple[float, float]], global_batch: float | None) -> bool:
    """Whether intervals are at least a step of the global batch long, on the whole."""
    amount = sum(amount for amount, _ in pairs)
    return global_batch is None or amount >= 0.9 * global_batch * len(pairs)


def _rate(pairs: Sequence[tuple[float, float]]) -> float:
    return sum(amount for amount, _ in pairs) / sum(seconds for _, seconds in pairs)
