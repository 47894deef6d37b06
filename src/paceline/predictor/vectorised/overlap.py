"""Backward with messages under it, for many configurations at once.

The scheduler places every task; here only two numbers per configuration are kept from message
to message: for how long the link is still busy when the device reaches the next message, and
for how long messages were in flight under computation. Both come out the same.
"""

from dataclasses import dataclass

import numpy as np

from paceline.predictor.vectorised.axes import Array

CHUNK = 8192
"""Configurations that are worked on at a time: small enough for a processor's cache."""


@dataclass(frozen=True)
class Exposed:
    """What communication adds to computing: seconds by configuration."""

    tail: Array
    """From the end of backward to that of the last message."""
    stretched: Array
    """By which computing under messages takes longer."""


def exposed_seconds(
    segments: Array,
    rest: Array,
    messages: Array,
    interference: float,
    queued: Array | float = 0.0,
) -> Exposed:
    """What messages add to a backward that is cut where each of them leaves.

    ``segments`` (message, configuration, ...) is the computing before each message, its launch
    included, ``rest`` what follows the last one, ``messages`` what each takes on the link. The
    axes behind the first broadcast against each other. Computing is slowed down by
    ``interference`` while a message is in flight (`step_builder.interfered_seconds`): work
    that takes w alone is done after w (1 + interference) if the link is busy for so long.
    ``queued`` is for how long earlier messages still keep it busy when backward begins.
    """
    shape = np.broadcast_shapes(
        segments.shape[1:], messages.shape[1:], rest.shape, np.shape(queued)
    )
    busy = np.zeros(shape)
    busy += queued
    under_messages = np.zeros(shape)
    overlap = np.empty(shape)
    stretched = (1.0 + interference) * segments
    for segment, message in zip(stretched, messages, strict=True):
        np.minimum(segment, busy, out=overlap)
        busy -= overlap
        busy += message
        under_messages += overlap
    np.minimum((1.0 + interference) * rest, busy, out=overlap)
    busy -= overlap
    under_messages += overlap
    under_messages *= interference / (1.0 + interference)
    return Exposed(busy, under_messages)
