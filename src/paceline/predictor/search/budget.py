"""Plans for a training run within a budget and a deadline."""

from collections.abc import Sequence
from dataclasses import dataclass

from paceline.errors import InputError
from paceline.predictor.training_run import DAY, TrainingRun
from paceline.units import plural


@dataclass(frozen=True)
class Limits:
    """``budget`` in the currency of the price, ``deadline`` in seconds; None is no limit."""

    budget: float | None = None
    deadline: float | None = None

    def are_met(self, run: TrainingRun, *, surely: bool = False) -> bool:
        """Whether the estimate meets the limits, or ``surely`` the upper end of the interval."""
        time, price = run.seconds, run.price
        met = True
        if self.deadline is not None:
            met &= (time.high if surely else time.value) <= self.deadline
        if self.budget is not None:
            assert price is not None
            met &= (price.high if surely else price.value) <= self.budget
        return met


def within_limits(runs: Sequence[TrainingRun], limits: Limits) -> tuple[TrainingRun, ...]:
    """The training runs that meet the limits.

    With a budget the fastest comes first, with a deadline alone the cheapest (fewest device-hours
    if no price is known).
    """
    if limits.budget is not None and any(run.price is None for run in runs):
        raise InputError("--budget needs a price", "give --price per device and hour")
    met = [run for run in runs if limits.are_met(run)]
    if not met:
        raise _out_of_reach(list(runs), limits)
    if limits.budget is not None:
        return tuple(sorted(met, key=lambda run: run.seconds.value))
    return tuple(sorted(met, key=lambda run: run.device_hours.value))


def _out_of_reach(runs: list[TrainingRun], limits: Limits) -> InputError:
    quickest = min(runs, key=lambda run: run.seconds.value)
    devices = plural(quickest.prediction.devices, "device")
    days = f"{quickest.seconds.value / DAY:,.3g} days on {devices}"
    cheapest = min(runs, key=lambda run: run.device_hours.value)
    price = ""
    if limits.budget is not None and cheapest.price is not None:
        price = f", the cheapest costs {cheapest.price.value:,.0f}"
    return InputError(
        f"no searched number of nodes meets the limits: the fastest takes {days}{price}",
        "search more nodes with --nodes 1..64, or raise the limits",
    )
