"""Ranking of plans: the fastest, or the simplest of those within its uncertainty."""

import math
from collections.abc import Sequence

from paceline.constants import number
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.plan_choices import Recompute
from paceline.predictor.prediction import Prediction
from paceline.predictor.prediction_text import RECOMPUTATION

_LEAST_DIFFERENCE = "spread.comparison.least"


def effort(prediction: Prediction) -> tuple[float, ...]:
    """The complexity of the plan of a prediction."""
    return plan_effort(prediction.plan)


def plan_effort(plan: Plan) -> tuple[float, ...]:
    """Complexity of running a plan, as a sort key: smaller is simpler.

    In order: sharded gradients and weights (ZeRO-1 costs no effort, so it counts like stage 0),
    pipeline stages, other degrees (experts before layers), recomputation, chunks, and shard
    copies.
    """
    return (
        max(plan.zero, 1),
        plan.pp,
        plan.cp,
        plan.tp,
        plan.ep,
        tuple(Recompute).index(plan.recompute),
        plan.recompute_every,
        plan.interleave,
        plan.zero,
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
    here, there = _uncertain_seconds(own), _uncertain_seconds(faster)
    apart = (here.get(name, 0.0) - there.get(name, 0.0) for name in {*here, *there})
    return math.hypot(*apart) / faster.step_seconds


def _uncertain_seconds(prediction: Prediction) -> dict[str, float]:
    """Losses with independent errors: all but recomputation, plus hidden communication."""
    losses = dict(prediction.losses)
    # Bubble and idle time are the same loss with and without a pipeline.
    waiting = losses.pop("pipeline bubble", 0.0) + losses.pop("idle", 0.0)
    losses.pop(RECOMPUTATION, None)
    return {
        **losses,
        "waiting": waiting,
        "products": prediction.ideal_seconds,
        "hidden": prediction.breakdown.hidden_communication_seconds,
    }


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
    """The recommended plan and the best plans of ``top`` - 1 other layouts, ranked.

    Plans with tensor parallelism across nodes are omitted unless all plans have it: their measured
    steps were a multiple of the predicted ones. Losses are expensive to compute for pipelines, so
    only candidates for the first place and displayed plans are compared.
    """
    inside = [own for own in predictions if own.plan.tp <= own.cluster.devices_per_node]
    usable = inside or list(predictions)
    first = simplest_first(_contenders(usable))[0]
    layouts: dict[tuple[int, ...], list[Prediction]] = {}
    for own in sorted(usable, key=lambda own: own.step_seconds):
        layouts.setdefault(layout_of(own.plan), []).append(own)
    layouts.pop(layout_of(first.plan))
    others = [_simplest_of_one_layout(plans) for plans in list(layouts.values())[: top - 1]]
    ordered = simplest_first([first, *others])
    return [first, *(own for own in ordered if own is not first)]


def layout_of(plan: Plan) -> tuple[int, ...]:
    """The degrees of a plan."""
    return plan.tp, plan.pp, plan.dp, plan.cp, plan.ep


def _contenders(predictions: Sequence[Prediction]) -> list[Prediction]:
    """Plans for which no other plan is both faster and at most as complex."""
    return [
        own
        for own in predictions
        if not any(
            other.step_seconds < own.step_seconds and effort(other) <= effort(own)
            for other in predictions
        )
    ]


def _simplest_of_one_layout(plans: Sequence[Prediction]) -> Prediction:
    """The simplest plan of a layout among those about as fast as its first, fastest one."""
    most = (1.0 + number(_LEAST_DIFFERENCE)) * plans[0].step_seconds
    return min((own for own in plans if own.step_seconds <= most), key=effort)
