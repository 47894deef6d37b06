"""Ranking of plans: the fastest, or the simplest of those within its uncertainty."""

import math
from collections.abc import Sequence

from paceline.constants import number
from paceline.predictor.framework_profiles import framework as find_framework
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.plan_choices import Recompute
from paceline.predictor.prediction import Prediction
from paceline.predictor.uncertainty.ratios import throughput_ratio, uncertain_seconds

_LEAST_DIFFERENCE = "spread.comparison.least"


def effort(prediction: Prediction) -> tuple[float, ...]:
    """The complexity of the plan of a prediction."""
    return plan_effort(prediction.plan)


def plan_effort(plan: Plan) -> tuple[float, ...]:
    """Complexity of running a plan, as a sort key: smaller is simpler.

    In order: sharded gradients and weights (ZeRO-1 costs no effort, so it counts like stage 0, and
    neither does the stage of a program that always shards, such as FSDP),
    pipeline stages, other degrees (experts before layers), recomputation, chunks, and shard
    copies.
    """
    native = plan.framework is not None and find_framework(plan.framework).shard_stage == plan.zero
    return (
        1 if native else max(plan.zero, 1),
        plan.pp,
        plan.cp,
        plan.tp,
        plan.ep,
        tuple(Recompute).index(plan.recompute),
        plan.recompute_every,
        plan.interleave,
        0 if native else plan.zero,
        plan.shard_copies,
    )


def distinguishable(own: Prediction, faster: Prediction) -> float:
    """Smallest relative difference of two plans of one job that exceeds the uncertainty.

    Errors in common parts cancel: the arithmetic, recomputation included, and the smaller of the
    two values of each loss. Only the differences of losses and of hidden communication carry
    independent errors.
    """
    # Fitted to pairs of nanotron layouts of one job (data/constants/spread.toml).
    return max(
        number(_LEAST_DIFFERENCE), number("spread.comparison.losses") * lost_apart(own, faster)
    )


def lost_apart(own: Prediction, faster: Prediction) -> float:
    """Distance of the losses of two plans, relative to the step of the faster one."""
    here, there = uncertain_seconds(own), uncertain_seconds(faster)
    apart = (here.get(name, 0.0) - there.get(name, 0.0) for name in {*here, *there})
    return math.hypot(*apart) / faster.step_seconds


def within_noise(own: Prediction, faster: Prediction) -> bool:
    """Whether ``own`` is not slower than ``faster`` beyond the uncertainty."""
    slower = own.step_seconds / faster.step_seconds - 1.0
    # The cheap test comes first: losses need a full schedule.
    return slower <= number(_LEAST_DIFFERENCE) or slower <= distinguishable(own, faster)


def best_guesses(predictions: Sequence[Prediction]) -> list[Prediction]:
    """Plans that no other plan beats beyond the uncertainty."""
    return [own for own in predictions if all(within_noise(own, other) for other in predictions)]


def simplest_first(predictions: Sequence[Prediction]) -> list[Prediction]:
    """Plans that may be the fastest by simplicity, then the others by speed."""
    best = best_guesses(predictions)
    rest = [own for own in predictions if own not in best]
    return [
        *sorted(best, key=lambda own: (*effort(own), own.step_seconds)),
        *sorted(rest, key=lambda own: own.step_seconds),
    ]


def shown_plans(predictions: Sequence[Prediction], top: int) -> list[Prediction]:
    """The best plan of each of the ``top`` fastest layouts, fastest first.

    Plans with tensor parallelism across nodes are omitted unless all plans have it: their measured
    steps were a multiple of the predicted ones. A layout shows the simplest of its plans that are
    about as fast as its fastest one.
    """
    layouts: dict[tuple[int, ...], list[Prediction]] = {}
    for own in sorted(_usable(predictions), key=lambda own: own.step_seconds):
        layouts.setdefault(layout_of(own.plan), []).append(own)
    shown = [_simplest_of_one_layout(plans) for plans in layouts.values()]
    return sorted(shown, key=lambda own: own.step_seconds)[:top]


def ties(predictions: Sequence[Prediction]) -> list[bool]:
    """Whether each plan is not distinguishable from the first one."""
    first = predictions[0]
    return [not throughput_ratio(own, first).distinguishable for own in predictions]


def _usable(predictions: Sequence[Prediction]) -> list[Prediction]:
    inside = [own for own in predictions if own.plan.tp <= own.cluster.devices_per_node]
    return inside or list(predictions)


def layout_of(plan: Plan) -> tuple[int, ...]:
    """The degrees of a plan."""
    return plan.tp, plan.pp, plan.dp, plan.cp, plan.ep


def _simplest_of_one_layout(plans: Sequence[Prediction]) -> Prediction:
    """The simplest plan of a layout among those about as fast as its first, fastest one."""
    most = (1.0 + number(_LEAST_DIFFERENCE)) * plans[0].step_seconds
    return min((own for own in plans if own.step_seconds <= most), key=effort)
