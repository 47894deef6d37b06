"""Plans for a training run within a budget and a deadline."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from paceline.errors import InputError
from paceline.predictor.memory.fit_probability import room_bytes
from paceline.predictor.plan.plan import Plan
from paceline.predictor.prediction import Prediction
from paceline.predictor.search.advice import predicted, prediction_of_plan
from paceline.predictor.search.plan_search import PlanSearch
from paceline.predictor.search.plan_variants import possible_plans
from paceline.predictor.training_run import DAY, TrainingRun


@dataclass(frozen=True)
class Limits:
    """``budget`` in the currency of the price, ``deadline`` in seconds; None is no limit."""

    budget: float | None = None
    deadline: float | None = None

    def __post_init__(self) -> None:
        for name in ("budget", "deadline"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value > 0):
                raise InputError(
                    f"{name} must be positive (got {value:g})", "give a number above 0"
                )

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


def within_limits(
    search: PlanSearch, run_of: Callable[[Prediction], TrainingRun], limits: Limits
) -> tuple[TrainingRun, ...]:
    """The best plan for each number of devices that meets the limits.

    With a budget the fastest comes first, with a deadline alone the cheapest (fewest device-hours
    if no price is known).
    """
    runs = [run_of(prediction) for prediction in best_by_devices(search)]
    if limits.budget is not None and any(run.price is None for run in runs):
        raise InputError("--budget needs a price", "give --price per device and hour")
    met = [run for run in runs if limits.are_met(run)]
    if not met:
        raise _out_of_reach(runs, limits)
    if limits.budget is not None:
        return tuple(sorted(met, key=lambda run: run.seconds.value))
    return tuple(sorted(met, key=lambda run: run.device_hours.value))


def best_by_devices(search: PlanSearch) -> list[Prediction]:
    """Predictions of the fastest plan that fits for each number of devices."""
    found = search.run()
    if search.predicts_each:
        return _best_of_each(search, search.fixed.candidates(found, search.like))
    fits = found.memory_bytes <= room_bytes(search.cluster.device.known_memory_bytes)
    best = []
    for count in np.unique(found.devices[fits]):
        own = np.flatnonzero(fits & (found.devices == count))
        quickest = predicted(search, found, int(own[found.seconds[own].argmin()]))
        best += [quickest] if quickest.fits else []
    if not best:
        raise InputError(
            f"none of {found.size:,} plans fits in the memory of {search.cluster.device.name}",
            "use more devices, or devices with more memory",
        )
    return best


def _best_of_each(search: PlanSearch, plans: Sequence[Plan]) -> list[Prediction]:
    """As `best_by_devices`, for plans that are predicted one by one."""
    room = room_bytes(search.cluster.device.known_memory_bytes)
    fastest: dict[int, Plan] = {}
    for own in sorted(possible_plans(search, plans), key=lambda own: own.seconds):
        if own.memory_bytes <= room:
            fastest.setdefault(own.plan.devices, own.plan)
    if not fastest:
        raise InputError(
            f"no plan fits in the memory of {search.cluster.device.name}",
            "use more devices, or devices with more memory",
        )
    return [prediction_of_plan(search, fastest[count]) for count in sorted(fastest)]


def _out_of_reach(runs: list[TrainingRun], limits: Limits) -> InputError:
    quickest = min(runs, key=lambda run: run.seconds.value)
    days = f"{quickest.seconds.value / DAY:,.3g} days on {quickest.prediction.devices} devices"
    cheapest = min(runs, key=lambda run: run.device_hours.value)
    price = ""
    if limits.budget is not None and cheapest.price is not None:
        price = f", the cheapest costs {cheapest.price.value:,.0f}"
    return InputError(
        f"no searched number of nodes meets the limits: the fastest takes {days}{price}",
        "search more nodes with --nodes 1..64, or raise the limits",
    )
