"""The order of plans: the fastest, or the simplest of those that nobody can tell from it."""

import math
from collections.abc import Sequence

from paceline.predictor.prediction import Prediction
from paceline.predictor.search.layer_table import MODES

_LEAST_DIFFERENCE = 0.02
"""Plans that differ by less are alike, however sure the prediction."""


def effort(prediction: Prediction) -> tuple[float, ...]:
    """What a plan asks of whoever runs it, the worst first: less is simpler.

    Tensor parallelism across nodes, then gradients and weights that are sharded (sharing out the
    optimiser's state alone costs nobody anything), stages, the other degrees, recomputation,
    chunks and copies of shards.
    """
    plan, node = prediction.plan, prediction.cluster.devices_per_node
    return (
        float(plan.tp > node),
        max(plan.zero, 1),
        plan.pp,
        plan.cp,
        plan.ep,
        plan.tp,
        MODES.index(plan.recompute),
        plan.interleave,
        plan.zero,
        plan.shard_copies,
    )


def distinguishable(own: Prediction, fastest: Prediction) -> float:
    """By which share two plans of one job must differ to be told apart.

    What they have in common, the arithmetic, is off alike in both; what each loses beside it is
    off by itself.
    """
    lost = math.hypot(1.0 - min(own.efficiency, 1.0), 1.0 - min(fastest.efficiency, 1.0))
    return max(_LEAST_DIFFERENCE, fastest.relative_error * lost)


def are_alike(own: Prediction, fastest: Prediction) -> bool:
    """Whether nobody can say before measuring that ``own`` is slower."""
    slower = own.step_seconds / fastest.step_seconds - 1.0
    return slower <= distinguishable(own, fastest)


def simplest_first(predictions: Sequence[Prediction]) -> list[Prediction]:
    """Plans as fast as the fastest, simple ones first; then the others, fast ones first."""
    fastest = min(predictions, key=lambda own: own.step_seconds)
    alike = [own for own in predictions if are_alike(own, fastest)]
    rest = [own for own in predictions if not are_alike(own, fastest)]
    return [
        *sorted(alike, key=lambda own: (*effort(own), own.step_seconds)),
        *sorted(rest, key=lambda own: own.step_seconds),
    ]
