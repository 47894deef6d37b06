"""Advice: the best plans for a workload on a cluster, and why the others are not."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from paceline.errors import InputError
from paceline.plan.plan import Plan
from paceline.predictor.memory_fit import room_bytes
from paceline.predictor.predict import predict
from paceline.predictor.prediction import Prediction
from paceline.predictor.search.plans import Candidates, PlanSearch
from paceline.predictor.search.ranking import best_guesses, layout_of, shown_plans
from paceline.predictor.search.remedies import network_remedies
from paceline.predictor.search.variations import PlanVariation, variations
from paceline.units import format_bytes, format_seconds

_FURTHER = 2
"""Plans beyond those asked for that the scheduler looks at, should the order change."""
_SEEDS = 4
"""Plans whose variations are looked at."""
_NAMED_LOSSES = 2
_FEWER_CHUNKS_COST = 0.015
"""Share of a step that fewer chunks may take longer to be worth a look: less than can be seen."""


@dataclass(frozen=True)
class Ranked:
    """A plan that fits, as the scheduler predicts it, and what keeps it from being better."""

    prediction: Prediction
    why: str


@dataclass(frozen=True)
class Infeasible:
    """A plan that would be faster than the best but does not fit, and what would make it fit."""

    plan: Plan
    step_seconds: float
    memory_bytes: float
    remedy: str


@dataclass(frozen=True)
class Advice:
    """What was tried and found, the plan to take first.

    ``close`` plans differ by less than what can be told apart; of these the simplest comes first
    and ``fastest`` is the number (from 0) of the quickest. ``remedies`` say what would remove what
    the first loses to networks.
    """

    tried: int
    fitting: int
    best: tuple[Ranked, ...]
    infeasible: tuple[Infeasible, ...]
    close: int
    fastest: int
    remedies: tuple[str, ...]


def advise(search: PlanSearch, top: int = 5) -> Advice:
    """Search every plan and let the scheduler predict the ``top`` ones.

    Plans are listed once for each layout of degrees, with the micro-batch, chunks, recomputation
    and sharding that are simplest of those as fast as the fastest there.
    """
    found = search.run()
    available = room_bytes(search.cluster.device.known_memory_bytes)
    fits = found.memory_bytes <= available
    listed = _shortlist(search, found, fits, top + _FURTHER)
    inside = ~fits & _inside(search, found)
    seeds = [*listed[:_SEEDS], *found.best_by_layout(inside, _SEEDS)]
    seeds += found.best_by_layout(inside & (found.zero == 1), 2 * _SEEDS)
    varied = variations(search, [found.plan(index, search.like) for index in seeds])
    roomy = [own for own in varied if own.memory_bytes <= available]
    if not listed and not roomy:
        raise _nothing_fits(search, found)
    fewer = [_fewer_chunks(search, found, fits, index) for index in listed]
    predictions = [predicted(search, found, i) for i in dict.fromkeys([*listed, *fewer])]
    predictions += [prediction_of_plan(search, plan) for plan in _layouts(roomy)[:top]]
    best = shown_plans(predictions, top)
    fastest = min(range(len(best)), key=lambda number: best[number].step_seconds)
    return Advice(
        tried=found.size + len(varied),
        fitting=int(fits.sum()) + len(roomy),
        best=tuple(Ranked(own, _why(own, best[0])) for own in best),
        infeasible=(
            *_infeasible(search, found, fits, inside, best[0].step_seconds),
            *_infeasible_variations(search, varied, best[0]),
        ),
        close=len(best_guesses(best)),
        fastest=fastest,
        remedies=network_remedies(search, best[0]),
    )


def _shortlist(
    search: PlanSearch, found: Candidates, fits: NDArray[np.bool_], most: int
) -> list[int]:
    """The best of each layout, and of those that shard least."""
    inside = fits & _inside(search, found)
    chosen = inside if inside.any() else fits
    kept = [chosen, chosen & (found.zero <= 1)]
    return list(dict.fromkeys(i for own in kept for i in found.best_by_layout(own, most)))


def _fewer_chunks(
    search: PlanSearch, found: Candidates, fits: NDArray[np.bool_], index: int
) -> int:
    """The plan with the fewest chunks of those that are nearly as fast and alike beside them."""
    most = (1.0 + _FEWER_CHUNKS_COST) * found.seconds[index]
    same = fits & (found.layout == found.layout[index]) & (found.zero == found.zero[index])
    plan = found.plan(index, search.like)
    others = {
        int(i): found.plan(int(i), search.like)
        for i in np.flatnonzero(same & (found.seconds <= most))
    }
    alike = [i for i, own in others.items() if replace(own, interleave=plan.interleave) == plan]
    return min(alike, key=lambda i: others[i].interleave)


def _inside(search: PlanSearch, found: Candidates) -> NDArray[np.bool_]:
    """Plans whose tensor-parallel devices are in one node."""
    return found.tp <= search.cluster.devices_per_node


def predicted(search: PlanSearch, found: Candidates, index: int) -> Prediction:
    """A plan of a search as the scheduler predicts it."""
    return prediction_of_plan(search, found.plan(index, search.like))


def prediction_of_plan(search: PlanSearch, plan: Plan) -> Prediction:
    """A plan for the job of a search as the scheduler predicts it."""
    workload = search.workload.with_batch(search.global_batch // plan.dp)
    cluster = search.cluster.with_devices(plan.devices)
    return predict(workload, cluster, plan, efficiency=search.efficiency)


def _layouts(varied: Sequence[PlanVariation]) -> list[Plan]:
    """The fastest variation of each layout, and of those that share out no gradients."""
    seen: dict[tuple[int, ...], Plan] = {}
    for own in varied:
        seen.setdefault((*layout_of(own.plan), own.plan.zero <= 1), own.plan)
    return list(seen.values())


def _why(own: Prediction, best: Prediction) -> str:
    """For the best plan what it loses, for another what it loses more."""
    losses, least = own.losses, best.losses
    if own is best:
        lost = {name: seconds / own.step_seconds for name, seconds in losses.items()}
        words = [f"{name} {share:.0%}" for name, share in _largest(lost) if share >= 0.005]
        return ", ".join(words) or "nothing lost"
    more = {name: seconds - least.get(name, 0.0) for name, seconds in losses.items()}
    more["slower products"] = own.ideal_seconds - best.ideal_seconds
    words = [
        f"{name} +{format_seconds(seconds)}"
        for name, seconds in _largest(more)
        if seconds >= 0.002 * best.step_seconds
    ]
    if own.step_seconds < best.step_seconds:
        gain = 1.0 - own.step_seconds / best.step_seconds
        return f"faster by {gain:.1%}, which only a measurement can show"
    return ", ".join(words) or "as fast within 0.2 %"


def _largest(losses: dict[str, float]) -> list[tuple[str, float]]:
    return sorted(losses.items(), key=lambda item: -item[1])[:_NAMED_LOSSES]


def _infeasible(
    search: PlanSearch,
    found: Candidates,
    fits: NDArray[np.bool_],
    too_large: NDArray[np.bool_],
    best_seconds: float,
) -> tuple[Infeasible, ...]:
    """The fastest plans that are too large, if they are predicted to beat the best that fits."""
    indices = found.best_by_layout(too_large, _FURTHER)
    steps = [(index, predicted(search, found, index).step_seconds) for index in indices]
    return tuple(
        Infeasible(
            found.plan(index, search.like),
            seconds,
            float(found.memory_bytes[index]),
            _remedy(search, found, fits, index),
        )
        for index, seconds in steps
        if seconds < best_seconds
    )


def _infeasible_variations(
    search: PlanSearch, varied: Sequence[PlanVariation], best: Prediction
) -> Iterator[Infeasible]:
    """The fastest variation that does not fit, if it beats the best, and of the best's layout."""
    available = room_bytes(search.cluster.device.known_memory_bytes)
    quick = (own for own in varied if own.seconds < best.step_seconds)
    large = [own for own in quick if own.memory_bytes > available]
    alike = [own for own in large if layout_of(own.plan) == layout_of(best.plan)]
    for own in dict.fromkeys([*large[:1], *alike[:1]]):
        missing = format_bytes(own.memory_bytes - available)
        words = f"needs {missing} more per device; {_beside(own.plan)}"
        yield Infeasible(own.plan, own.seconds, own.memory_bytes, words)


def _beside(plan: Plan) -> str:
    """What of a variation the degrees of a table do not say."""
    shared = [f"{name} {getattr(plan, name)}" for name in ("cp", "ep") if getattr(plan, name) > 1]
    shared += [f"shards in groups of {plan.shard_degree}"] if plan.shard_copies > 1 else []
    shared += [f"recompute {plan.recompute_word}"] if plan.recompute_every > 1 else []
    return ", ".join(shared) or f"uneven stages, {plan.interleave} chunks each"


def _remedy(search: PlanSearch, found: Candidates, fits: NDArray[np.bool_], index: int) -> str:
    """The fastest plan of the same layout that fits, as a change; else what is missing."""
    same = np.flatnonzero(fits & (found.layout == found.layout[index]))
    if same.size == 0:
        room = room_bytes(search.cluster.device.known_memory_bytes)
        missing = found.memory_bytes[index] - room
        return f"needs {format_bytes(float(missing))} more per device; take larger tp or pp"
    nearest = int(same[found.seconds[same].argmin()])
    changes = plan_changes(found.plan(index, search.like), found.plan(nearest, search.like))
    seconds = predicted(search, found, nearest).step_seconds
    return f"fits with {changes}: {format_seconds(seconds)}"


def plan_changes(before: Plan, after: Plan) -> str:
    """What differs between two plans, as options of the command line."""
    names = {"micro_batch": "micro-batch", "interleave": "interleave", "zero": "zero"}
    words = [
        f"--{option} {getattr(after, name)}"
        for name, option in {**names, "recompute_word": "recompute"}.items()
        if getattr(after, name) != getattr(before, name)
    ]
    if after.sequence_parallel != before.sequence_parallel:
        words.append("--sequence-parallel" if after.sequence_parallel else "whole sequences")
    return " ".join(words) or "no change"


def _nothing_fits(search: PlanSearch, found: Candidates) -> InputError:
    smallest = int(found.memory_bytes.argmin())
    plan = found.plan(smallest, search.like)
    needed = format_bytes(float(found.memory_bytes[smallest]))
    available = format_bytes(search.cluster.device.known_memory_bytes)
    return InputError(
        f"none of {found.size:,} plans fits in {available}: the leanest "
        f"({plan.label}, zero {plan.zero}, recompute {plan.recompute}) needs {needed}",
        "take more nodes, devices with more memory, or a smaller model",
    )
