"""The messages that the gradients of given layers travel in."""

from collections.abc import Sequence

from paceline.plan.messages import Message, messages
from paceline.plan.synchronisation import Policy, Synchronisation
from paceline.predictor.step_costs import CollectiveSeconds, LayerTime


def gradient_messages(
    layers: Sequence[LayerTime],
    synchronisation: Synchronisation,
    seconds: CollectiveSeconds,
    overhead_seconds: float = 0.0,
) -> list[Message]:
    """Messages of one backward through ``layers``, in the order in which they get ready.

    ``seconds`` is what a message takes, ``overhead_seconds`` what it takes from the device.
    """
    ready = [0.0] * len(layers)
    clock = 0.0
    for index in reversed(range(len(layers))):
        clock += layers[index].whole_backward_seconds
        ready[index] = clock
    sizes = [layer.gradient_bytes for layer in layers]
    return messages(synchronisation, sizes, ready, seconds, overhead_seconds)


def leaves_after_backward(synchronisation: Synchronisation) -> bool:
    """Whether messages wait for the end of backward."""
    return synchronisation.policy in (Policy.NONE, Policy.ONE_MESSAGE)
