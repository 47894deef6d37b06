"""The order of plans: the fastest, or the simplest of those that nobody can tell from it."""

import math
from collections.abc import Sequence

from paceline.constants import number
from paceline.plan.plan import Plan
from paceline.predictor.prediction import Prediction
from paceline.predictor.render import RECOMPUTATION
from paceline.predictor.search.layer_table import MODES

_LEAST_DIFFERENCE = 0.02
"""Plans that differ by less are alike, however sure the prediction."""


def effort(prediction: Prediction) -> tuple[float, ...]:
    """What a plan asks of whoever runs it, the worst first: less is simpler.

    Gradients and weights that are sharded (sharing out the optimiser's state alone costs nobody
    anything), stages, the other degrees (experts are shared out before layers are), recomputation,
    chunks and copies of shards.
    """
    plan = prediction.plan
    return (
        max(plan.zero, 1),
        plan.pp,
        plan.cp,
        plan.tp,
        plan.ep,
        MODES.index(plan.recompute),
        plan.recompute_every,
        plan.interleave,
        plan.zero,
        plan.shard_copies,
    )


def distinguishable(own: Prediction, faster: Prediction) -> float:
    """By which share two plans of one job must differ to be told apart.

    What they have in common is off alike in both: the arithmetic, that which is done again
    included, and of each loss as much as both have. What one loses or hides more than the other
    may be off by itself.
    """
    return max(_LEAST_DIFFERENCE, number("spread.comparison.losses") * lost_apart(own, faster))


def lost_apart(own: Prediction, faster: Prediction) -> float:
    """How unlike two plans are in what they lose, in steps of the faster one."""
    here, there = _uncertain_seconds(own), _uncertain_seconds(faster)
    apart = (here.get(name, 0.0) - there.get(name, 0.0) for name in {*here, *there})
    return math.hypot(*apart) / faster.step_seconds


def _uncertain_seconds(prediction: Prediction) -> dict[str, float]:
    """What a plan loses by cause, but for what it computes again, and messages that may show."""
    losses = dict(prediction.losses)
    waiting = losses.pop("pipeline bubble", 0.0) + losses.pop("idle", 0.0)
    losses.pop(RECOMPUTATION, None)
    return {
        **losses,
        "waiting": waiting,
        "products": prediction.ideal_seconds,
        "hidden": prediction.breakdown.hidden_communication_seconds,
    }


def are_alike(own: Prediction, faster: Prediction) -> bool:
    """Whether nobody can say before measuring that ``own`` is slower."""
    slower = own.step_seconds / faster.step_seconds - 1.0
    return slower <= _LEAST_DIFFERENCE or slower <= distinguishable(own, faster)


def best_guesses(predictions: Sequence[Prediction]) -> list[Prediction]:
    """Plans of which nobody can say before measuring that another one is faster."""
    return [own for own in predictions if all(are_alike(own, other) for other in predictions)]


def simplest_first(predictions: Sequence[Prediction]) -> list[Prediction]:
    """Of plans that may each be the fastest simple ones first; then the others, fast ones first."""
    best = best_guesses(predictions)
    rest = [own for own in predictions if own not in best]
    return [
        *sorted(best, key=lambda own: (*effort(own), own.step_seconds)),
        *sorted(rest, key=lambda own: own.step_seconds),
    ]


def shown_plans(predictions: Sequence[Prediction], top: int) -> list[Prediction]:
    """The plan to take first and the fastest of ``top`` - 1 other layouts, in their order.

    Plans whose tensor-parallel devices reach across nodes are left out unless all do: what was
    measured of such was a multiple of what was predicted. What plans lose, which takes long to
    say of pipelines, is asked only of those that may come first and of those that are shown.
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
    """Plans than which no other is both faster and no harder to run."""
    return [
        own
        for own in predictions
        if not any(
            other.step_seconds < own.step_seconds and effort(other) <= effort(own)
            for other in predictions
        )
    ]


def _simplest_of_one_layout(plans: Sequence[Prediction]) -> Prediction:
    """The simplest of the plans of a layout, the fastest of which is the first."""
    most = (1.0 + _LEAST_DIFFERENCE) * plans[0].step_seconds
    return min((own for own in plans if own.step_seconds <= most), key=effort)
