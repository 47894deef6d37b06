"""Gradient buckets: tensors grouped into messages by a policy."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from paceline.predictor.plan.sync_policy import Policy, Synchronisation

FloatArray = npt.NDArray[np.float64]
MessageSeconds = Callable[[Any], Any]
"""Seconds of a message by its size in bytes; may accept an array of sizes."""


@dataclass(frozen=True)
class Message:
    """Gradients sent together: indices of their layers, and their size.

    ``layers`` counts from the input (0 is the first layer), in the order in which backward
    finishes them, so the message is ready when the last one is.
    """

    layers: tuple[int, ...]
    size_bytes: float


def messages(
    synchronisation: Synchronisation,
    gradient_bytes: Sequence[float],
    ready_seconds: Sequence[float],
    message_seconds: MessageSeconds,
    overhead_seconds: float = 0.0,
) -> list[Message]:
    """Messages of one step in the order in which backward makes them ready.

    ``gradient_bytes`` and ``ready_seconds`` (end of each layer's backward) are in forward
    order; layers without gradients send nothing. Only ``fused`` and ``merged`` use the times;
    ``overhead_seconds`` is the delay of backward by each message.
    """
    backward = [i for i in reversed(range(len(gradient_bytes))) if gradient_bytes[i] > 0]
    if not backward:
        return []
    sizes = [float(gradient_bytes[i]) for i in backward]
    match synchronisation.policy:
        case Policy.ONE_MESSAGE:
            lengths = [len(sizes)]
        case Policy.BUCKETED | Policy.SPLIT:
            lengths = bucket_lengths(
                sizes, synchronisation.first_bytes, synchronisation.bucket_bytes
            )
        case Policy.FUSED:
            ready = [ready_seconds[i] for i in backward]
            lengths = fused_lengths(sizes, ready, message_seconds, synchronisation.bucket_bytes)
        case Policy.MERGED:
            ready = [ready_seconds[i] for i in backward]
            end = max(ready_seconds)
            lengths = merged_lengths(sizes, ready, message_seconds, overhead_seconds, end)
        case Policy.NONE | Policy.PER_TENSOR | Policy.PRIORITY:
            lengths = [1] * len(sizes)
    grouped = []
    start = 0
    for length in lengths:
        end = start + length
        grouped.append(Message(tuple(backward[start:end]), sum(sizes[start:end])))
        start = end
    return grouped


def bucket_lengths(sizes: Sequence[float], first_bytes: float, bucket_bytes: float) -> list[int]:
    """Number of tensors per bucket, filled in the order given.

    A bucket closes as soon as it reaches its limit, as in PyTorch's reducer, so it may exceed
    the limit by its last tensor; the last bucket holds the rest.
    """
    lengths: list[int] = []
    held, count, limit = 0.0, 0, first_bytes
    for size in sizes:
        held += size
        count += 1
        if held >= limit:
            lengths.append(count)
            held, count, limit = 0.0, 0, bucket_bytes
    return [*lengths, count] if count else lengths


def fused_lengths(
    sizes: Sequence[float],
    ready_seconds: Sequence[float],
    message_seconds: MessageSeconds,
    limit_bytes: float,
) -> list[int]:
    """Number of tensors per message when an idle link sends all ready tensors (Horovod).

    ``sizes`` and ``ready_seconds`` are in the order of backward. A message holds at most
    ``limit_bytes``, but always one tensor.
    """
    lengths: list[int] = []
    free = 0.0
    first = 0
    while first < len(sizes):
        leaves = max(free, ready_seconds[first])
        held, last = sizes[first], first + 1
        while (
            last < len(sizes)
            and ready_seconds[last] <= leaves
            and held + sizes[last] <= limit_bytes
        ):
            held += sizes[last]
            last += 1
        lengths.append(last - first)
        free = leaves + float(message_seconds(held))
        first = last
    return lengths


def merged_lengths(
    sizes: Sequence[float],
    ready_seconds: Sequence[float],
    message_seconds: MessageSeconds,
    overhead_seconds: float = 0.0,
    backward_seconds: float = 0.0,
) -> list[int]:
    """Number of tensors per message that minimises the end of the step (MG-WFBP).

    ``sizes`` and ``ready_seconds`` are in the order of backward. A message starts when its last
    tensor is ready and the previous message has ended; the k-th message has delayed backward by
    k overheads. So the earliest end of the first j tensors in k messages is ``min over i < j of
    max(end[k-1][i], ready[j] + k overhead) + seconds(bytes of i..j)``. This dynamic program is
    exact for any cost function, whereas the greedy rule of MG-WFBP assumes latency plus size over
    bandwidth. Ties go to fewer messages. Backward ends at ``backward_seconds``, after its last
    gradient if layers without gradients follow.
    """
    count = len(sizes)
    seconds = _span_seconds(np.asarray(sizes, dtype=float), message_seconds)
    ready = np.asarray(ready_seconds, dtype=float)
    ends = np.full(count + 1, np.inf)
    ends[0] = 0.0
    cuts: list[npt.NDArray[np.int_]] = []
    best_end, best_count = np.inf, 0
    for used in range(1, count + 1):
        delay = used * overhead_seconds
        computed = backward_seconds + delay
        if max(computed, ready[-1] + delay + seconds[:, -1].min()) >= best_end:
            break
        candidates = np.maximum(ends[:count, None], ready + delay) + seconds
        cuts.append(candidates.argmin(axis=0))
        ends = np.concatenate(([np.inf], candidates.min(axis=0)))
        if max(computed, ends[-1]) < best_end:
            best_end, best_count = max(computed, float(ends[-1])), used
    lengths: list[int] = []
    last = count
    for chosen in reversed(cuts[:best_count]):
        first = int(chosen[last - 1])
        lengths.append(last - first)
        last = first
    return lengths[::-1]


def _span_seconds(sizes: FloatArray, message_seconds: MessageSeconds) -> FloatArray:
    """Seconds of the message of tensors i..j at [i, j]; infinite for j < i."""
    cumulative = np.concatenate(([0.0], np.cumsum(sizes)))
    first, last = np.triu_indices(len(sizes))
    spans = np.full((len(sizes), len(sizes)), np.inf)
    spans[first, last] = _on_array(message_seconds, cumulative[last + 1] - cumulative[first])
    return spans


def _on_array(message_seconds: MessageSeconds, sizes: FloatArray) -> FloatArray:
    """``message_seconds`` of each size, vectorised if the function accepts arrays."""
    try:
        together = np.asarray(message_seconds(sizes), dtype=np.float64)
    except (TypeError, ValueError):
        together = np.empty(0)
    if together.shape == sizes.shape:
        return together
    return np.array([float(message_seconds(float(size))) for size in sizes], dtype=np.float64)
