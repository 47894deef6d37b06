"""Advice: the best plans for a workload on a cluster, and what limits them."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from paceline.constants import number
from paceline.errors import InputError
from paceline.predictor.memory.fit_probability import room_bytes
from paceline.predictor.plan.plan import Plan
from paceline.predictor.predict import predict_job
from paceline.predictor.prediction import Prediction
from paceline.predictor.search.plan_ranking import layout_of, shown_plans, simplest_first, ties
from paceline.predictor.search.plan_search import Candidates, PlanSearch
from paceline.predictor.search.plan_variants import (
    PlanVariation,
    job_of_plan,
    possible_plans,
    variations,
)
from paceline.predictor.whatif import WhatIf, what_if
from paceline.units import format_bytes, format_seconds

_FURTHER = 2
"""Additional plans that the scheduler predicts, in case the order changes."""
USUAL_PLANS = 5
"""Layouts that are considered even if fewer are shown."""
_SEEDS = 4
"""Plans whose variations are tried."""
_NAMED_LOSSES = 2


@dataclass(frozen=True)
class Ranked:
    """The prediction of a plan that fits, and its losses."""

    prediction: Prediction
    why: str


@dataclass(frozen=True)
class Infeasible:
    """A plan that is faster than the best but does not fit, and a remedy."""

    plan: Plan
    step_seconds: float
    memory_bytes: float
    remedy: str


@dataclass(frozen=True)
class Advice:
    """The result of a search, the fastest plan first.

    ``close`` plans, of those considered, are not distinguishable from the fastest; ``simplest`` is
    the index of the simplest shown one within the error margin. ``remedies`` reduce the network
    losses of the first.
    """

    tried: int
    fitting: int
    best: tuple[Ranked, ...]
    infeasible: tuple[Infeasible, ...]
    close: int
    simplest: int
    remedies: tuple[str, ...]


def advise(search: PlanSearch, top: int = USUAL_PLANS) -> Advice:
    """Search all plans and predict the best ones with the scheduler.

    Each layout of degrees is listed once, with the simplest micro-batch, chunks, recomputation and
    sharding among the equally fast ones. The first rows do not depend on ``top``.
    """
    found = search.run()
    considered = max(top, USUAL_PLANS)
    if search.predicts_each:
        plans = search.fixed.candidates(found, search.like)
        return _advise_each(search, [*plans, *search.known], top)
    available = search.room_bytes(found.memory_bytes)
    fits = found.memory_bytes <= available
    listed = _shortlist(search, found, fits, considered + _FURTHER)
    inside = ~fits & _inside(search, found)
    seeds = [*listed[:_SEEDS], *found.best_by_layout(inside, _SEEDS)]
    seeds += found.best_by_layout(inside & (found.zero == 1), 2 * _SEEDS)
    varied = variations(search, [found.plan(index, search.like) for index in seeds])
    varied += possible_plans(search, search.known)
    roomy = [own for own in varied if own.memory_bytes <= available]
    if not listed and not roomy:
        raise _nothing_fits(search, found)
    fewer = [_fewer_chunks(search, found, fits, index) for index in listed]
    predictions = [predicted(search, found, i) for i in dict.fromkeys([*listed, *fewer])]
    predictions += [prediction_of_plan(search, plan) for plan in _layouts(roomy)[:considered]]
    predictions = [own for own in predictions if own.fits]
    if not predictions:
        raise _nothing_fits(search, found)
    first = min(predictions, key=lambda own: own.step_seconds)
    return _advice(
        predictions,
        top,
        tried=found.size + len(varied),
        fitting=int(fits.sum()) + len(roomy),
        infeasible=(
            *_infeasible(search, found, available, inside, first.step_seconds),
            *_infeasible_variations(varied, available, first),
        ),
    )


def _advice(
    predictions: Sequence[Prediction],
    top: int,
    *,
    tried: int,
    fitting: int,
    infeasible: tuple[Infeasible, ...],
) -> Advice:
    """The ``top`` of the predicted plans, fastest first, with losses and remedies."""
    considered = shown_plans(predictions, max(top, USUAL_PLANS))
    best = considered[:top]
    return Advice(
        tried=tried,
        fitting=fitting,
        best=tuple(Ranked(own, _why(own, best[0])) for own in best),
        infeasible=infeasible,
        close=sum(ties(considered)),
        simplest=best.index(simplest_first(best)[0]),
        remedies=network_remedies(best[0]),
    )


def _advise_each(search: PlanSearch, plans: Sequence[Plan], top: int) -> Advice:
    """Predict ``plans`` one by one and list the ``top`` ones."""
    tried = sorted(possible_plans(search, plans), key=lambda own: own.seconds)
    available = search.room_bytes(np.array([own.memory_bytes for own in tried] or [math.inf]))
    roomy = [own for own in tried if own.memory_bytes <= available]
    found = [
        prediction_of_plan(search, plan)
        for plan in _layouts(roomy)[: max(top, USUAL_PLANS) + _FURTHER]
    ]
    predictions = [own for own in found if own.fits]
    if not predictions:
        needed = min((own.memory_bytes for own in tried), default=None)
        least = "" if needed is None else f": the smallest needs {format_bytes(needed)}"
        fixed = ", ".join(f"{name} {value}" for name, value in search.fixed.added.items())
        raise InputError(
            f"no plan {f'with {fixed} ' if fixed else ''}is possible and fits in "
            f"{format_bytes(search.cluster.device.known_memory_bytes)}{least}",
            "predict one plan with 'paceline predict' for the reason, or use more devices",
        )
    first = min(predictions, key=lambda own: own.step_seconds)
    return _advice(
        predictions,
        top,
        tried=len(tried),
        fitting=len(roomy),
        infeasible=tuple(_infeasible_variations(tried, available, first)),
    )


def _shortlist(
    search: PlanSearch, found: Candidates, fits: NDArray[np.bool_], most: int
) -> list[int]:
    """The best plan of each layout, and the best one with ZeRO stage 0 or 1."""
    inside = fits & _inside(search, found)
    chosen = inside if inside.any() else fits
    kept = [chosen, chosen & (found.zero <= 1)]
    return list(dict.fromkeys(i for own in kept for i in found.best_by_layout(own, most)))


def _fewer_chunks(
    search: PlanSearch, found: Candidates, fits: NDArray[np.bool_], index: int
) -> int:
    """The plan with the fewest chunks among nearly equally fast, otherwise identical plans."""
    most = (1.0 + number("spread.comparison.fewer_chunks")) * found.seconds[index]
    same = fits & (found.layout == found.layout[index]) & (found.zero == found.zero[index])
    plan = found.plan(index, search.like)
    others = {
        int(i): found.plan(int(i), search.like)
        for i in np.flatnonzero(same & (found.seconds <= most))
    }
    same_layout = [
        i for i, own in others.items() if replace(own, interleave=plan.interleave) == plan
    ]
    return min(same_layout, key=lambda i: others[i].interleave)


def _inside(search: PlanSearch, found: Candidates) -> NDArray[np.bool_]:
    """Plans with tensor parallelism inside a node."""
    return found.tp <= search.cluster.devices_per_node


def predicted(search: PlanSearch, found: Candidates, index: int) -> Prediction:
    """The prediction of a plan of a search."""
    return prediction_of_plan(search, found.plan(index, search.like))


def prediction_of_plan(search: PlanSearch, plan: Plan) -> Prediction:
    """The prediction of a plan for the job of a search."""
    return predict_job(job_of_plan(search, plan))


def _layouts(varied: Sequence[PlanVariation]) -> list[Plan]:
    """The fastest variation of each layout, with and without sharded gradients."""
    seen: dict[tuple[int, ...], Plan] = {}
    for own in varied:
        seen.setdefault((*layout_of(own.plan), own.plan.zero <= 1), own.plan)
    return list(seen.values())


def _why(own: Prediction, best: Prediction) -> str:
    """Losses of the best plan; additional losses of another plan."""
    losses, least = own.losses, best.losses
    if own is best:
        lost = {name: seconds / own.step_seconds for name, seconds in losses.items()}
        texts = [f"{name} {share:.0%}" for name, share in _largest(lost) if share >= 0.005]
        return ", ".join(texts) or "no losses"
    more = {name: seconds - least.get(name, 0.0) for name, seconds in losses.items()}
    more["slower GEMMs"] = own.ideal_seconds - best.ideal_seconds
    texts = [
        f"{name} +{format_seconds(seconds)}"
        for name, seconds in _largest(more)
        if seconds >= 0.002 * best.step_seconds
    ]
    return ", ".join(texts) or "equally fast within 0.2 %"


def _largest(losses: dict[str, float]) -> list[tuple[str, float]]:
    return sorted(losses.items(), key=lambda item: -item[1])[:_NAMED_LOSSES]


def _infeasible(
    search: PlanSearch,
    found: Candidates,
    available: float,
    too_large: NDArray[np.bool_],
    best_seconds: float,
) -> tuple[Infeasible, ...]:
    """The fastest plans that do not fit, if they are faster than the best that fits."""
    indices = found.best_by_layout(too_large, _FURTHER)
    steps = [(index, predicted(search, found, index).step_seconds) for index in indices]
    return tuple(
        Infeasible(
            found.plan(index, search.like),
            seconds,
            float(found.memory_bytes[index]),
            _remedy(search, found, available, index),
        )
        for index, seconds in steps
        if seconds < best_seconds
    )


def _infeasible_variations(
    varied: Sequence[PlanVariation], available: float, best: Prediction
) -> Iterator[Infeasible]:
    """The fastest variations that do not fit, overall and in the layout of the best plan."""
    quick = (own for own in varied if own.seconds < best.step_seconds)
    large = [own for own in quick if own.memory_bytes > available]
    same_layout = [own for own in large if layout_of(own.plan) == layout_of(best.plan)]
    for own in dict.fromkeys([*large[:1], *same_layout[:1]]):
        missing = format_bytes(own.memory_bytes - available)
        further = _further_degrees(own.plan)
        remedy = f"needs {missing} more per device{f'; {further}' if further else ''}"
        yield Infeasible(own.plan, own.seconds, own.memory_bytes, remedy)


def _further_degrees(plan: Plan) -> str:
    """Properties of a variation that the columns of the table do not show."""
    shared = [f"{name} {getattr(plan, name)}" for name in ("cp", "ep") if getattr(plan, name) > 1]
    shared += [f"shard groups of {plan.shard_degree}"] if plan.shard_copies > 1 else []
    shared += [f"recompute {plan.format_recompute}"] if plan.recompute_every > 1 else []
    uneven = f"uneven stages, {plan.interleave} chunks each" if plan.pp > 1 else ""
    return ", ".join(shared) or uneven


def _remedy(search: PlanSearch, found: Candidates, available: float, index: int) -> str:
    """The change to the fastest plan of the same layout that fits, else the missing memory."""
    fits = found.memory_bytes <= available
    same = np.flatnonzero(fits & (found.layout == found.layout[index]))
    if same.size == 0:
        missing = found.memory_bytes[index] - available
        return f"needs {format_bytes(float(missing))} more per device; use larger tp or pp"
    nearest = int(same[found.seconds[same].argmin()])
    changes = plan_changes(found.plan(index, search.like), found.plan(nearest, search.like))
    seconds = predicted(search, found, nearest).step_seconds
    return f"fits with {changes}: {format_seconds(seconds)}"


def plan_changes(before: Plan, after: Plan) -> str:
    """The difference between two plans as command-line options."""
    names = {"micro_batch": "micro-batch", "interleave": "interleave", "zero": "zero"}
    options = [
        f"--{option} {getattr(after, name)}"
        for name, option in {**names, "format_recompute": "recompute"}.items()
        if getattr(after, name) != getattr(before, name)
    ]
    if after.sequence_parallel != before.sequence_parallel:
        options.append(
            "--sequence-parallel" if after.sequence_parallel else "--no-sequence-parallel"
        )
    return " ".join(options) or "no change"


def _nothing_fits(search: PlanSearch, found: Candidates) -> InputError:
    smallest = int(found.memory_bytes.argmin())
    plan = found.plan(smallest, search.like)
    needed = float(found.memory_bytes[smallest])
    capacity = search.cluster.device.known_memory_bytes
    nodes = math.ceil(search.cluster.nodes * needed / room_bytes(capacity))
    leanest = f"{plan.label}, zero {plan.zero}, recompute {plan.recompute}"
    return InputError(
        f"none of {found.size:,} plans fits in {format_bytes(capacity)}: the smallest "
        f"({leanest}) needs {format_bytes(needed)}",
        f"use about {nodes} nodes or more, devices with more memory, or a smaller model",
    )


_LEAST_LOSS = 0.05
_LEAST_GAIN = 0.01
_MOST = 4


def network_remedies(best: Prediction) -> tuple[str, ...]:
    """Lines with the loss and the most effective changes; empty if the loss is small."""
    losses = best.losses
    lost = losses["network"] + losses["links within a replica"]
    if lost < _LEAST_LOSS * best.step_seconds:
        return ()
    job = best.timeline.step.job
    found = [change for change in what_if(job) if _is_about_networks(change)]
    worth = [own for own in found if own.saved_seconds > _LEAST_GAIN * own.base_seconds]
    worth = sorted(worth, key=lambda own: own.step_seconds)[:_MOST]
    changes = ", ".join(
        f"{own.change} ({own.saved_seconds / own.base_seconds:.0%})" for own in worth
    )
    return (
        f"Plan 1 loses {lost / best.step_seconds:.0%} of its step to communication.",
        f"Savings per step: {changes}." if changes else "No tested change saves 1 % of the step.",
    )


def _is_about_networks(change: WhatIf) -> bool:
    """Whether a change concerns networks, fits in memory and is realistic (not "free")."""
    if change.fits is False or change.change.endswith(" free"):
        return False
    if change.kind == "resource":
        return "links in a node" in change.change or "network" in change.change
    return not change.change.startswith("recompute")
