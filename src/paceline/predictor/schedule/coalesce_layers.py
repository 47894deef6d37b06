"""Coalesced runs of layers without messages between them."""

from collections.abc import Sequence
from dataclasses import replace

from paceline.predictor.comm.buckets import Message
from paceline.predictor.plan.sync_policy import Policy, Synchronisation


def runs_between(messages: Sequence[Message], first: int, last: int) -> list[range]:
    """Layers ``first`` up to ``last`` cut at messages, in the order of the network.

    ``messages`` are in the order of backward and count layers from ``first``. A message follows
    the backward of its run; the run before all of them, if any, sends nothing.
    """
    starts = [first + message.layers[-1] for message in reversed(messages)]
    ends = [*starts[1:], last]
    rest = [range(first, starts[0] if starts else last)]
    runs = [range(*pair) for pair in zip(starts, ends, strict=True)]
    return runs if len(rest[0]) == 0 else rest + runs


def one_message_each(synchronisation: Synchronisation) -> Synchronisation:
    """The equivalent policy for coalesced runs with one message each."""
    if synchronisation.policy is Policy.SPLIT:
        return replace(synchronisation, first_bytes=1.0, bucket_bytes=1.0)
    after = synchronisation.leaves_after_backward
    return replace(synchronisation, policy=Policy.NONE if after else Policy.PER_TENSOR)
