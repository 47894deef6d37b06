"""The data-parallel step of one representative worker."""

from collections.abc import Sequence

from paceline.plan.synchronisation import Synchronisation
from paceline.predictor.replica_step import replica_step
from paceline.predictor.step_costs import (
    CollectiveSeconds,
    GradientExchange,
    LayerTime,
    StepCosts,
)
from paceline.step import Step

__all__ = ["CollectiveSeconds", "LayerTime", "data_parallel_step"]


def data_parallel_step(
    layers: Sequence[LayerTime],
    synchronisation: Synchronisation,
    all_reduce: CollectiveSeconds | None,
    *,
    reduce_scatter: CollectiveSeconds | None = None,
    all_gather: CollectiveSeconds | None = None,
    input_seconds: float = 0.0,
    copy_seconds: float = 0.0,
    input_overlapped: bool = True,
    update_seconds: float = 0.0,
    message_overhead_seconds: float = 0.0,
    overhead_seconds: float = 0.0,
    interference: float = 0.0,
    label: str = "",
) -> Step:
    """The steady-state step of one representative worker, scheduled.

    ``layers`` are in forward order. ``all_reduce`` gives the seconds of a message among all
    workers; None means one worker, which communicates nothing. The rest is explained at
    `GradientExchange` and `StepCosts`. In a steady state the all-gathers of ``split`` run under
    the forward that needs them, and a step with ``priority`` begins with backward and ends
    with the next forward.
    """
    costs = StepCosts(
        input_seconds,
        copy_seconds,
        input_overlapped,
        update_seconds,
        message_overhead_seconds,
        overhead_seconds,
        interference,
    )
    exchange = None
    if all_reduce is not None:
        exchange = GradientExchange(synchronisation, all_reduce, reduce_scatter, all_gather)
    return replica_step(layers, exchange, costs, label=label or str(synchronisation.policy))
