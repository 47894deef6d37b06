"""Which tensors travel together: gradients grouped into messages by a policy."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from paceline.plan.synchronisation import Policy, Synchronisation

FloatArray = npt.NDArray[np.float64]
MessageSeconds = Callable[[Any], Any]
"""Seconds of a message of so many bytes; may accept an array of sizes."""


@dataclass(frozen=True)
class Message:
    """Gradients sent together: indices of their layers, and what they weigh.

    ``layers`` counts from the input side (0 is the first layer) and lists the order in which
    backward finishes them, so the last one decides when the message can leave.
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
    order; layers without gradients send nothing. Only ``merged`` looks at the times, and at
    ``overhead_seconds``, by which each message delays the backward it interrupts.
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

    A bucket closes once it holds at least its limit, as PyTorch's reducer does, so it may
    exceed it by the tensor that closed it; the last one holds what is left.
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
    """Number of tensors per message when a free link takes whatever is ready.

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
    """Number of tensors per message such that the step ends as early as it can.

    ``sizes`` and ``ready_seconds`` are in the order of backward. A message leaves when its last
    tensor is ready and the message before has ended; the k-th one has delayed backward by k
    overheads. So the earliest end of the first j tensors in k messages is ``min over i < j of
    max(end[k-1][i], ready[j] + k overhead) + seconds(bytes of i..j)``. This is exact for any
    cost of a message, where the greedy rule of MG-WFBP needs a start-up plus a rate; among
    equals the fewest messages are taken. Backward itself ends at ``backward_seconds``, later
    than its last gradient where layers without any follow.
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
    """Seconds of the message of tensors i..j at [i, j]; infinite where j comes before i."""
    cumulative = np.concatenate(([0.0], np.cumsum(sizes)))
    first, last = np.triu_indices(len(sizes))
    spans = np.full((len(sizes), len(sizes)), np.inf)
    spans[first, last] = _on_array(message_seconds, cumulative[last + 1] - cumulative[first])
    return spans


def _on_array(message_seconds: MessageSeconds, sizes: FloatArray) -> FloatArray:
    """``message_seconds`` of each size: at once if it takes arrays, one by one if not."""
    try:
        together = np.asarray(message_seconds(sizes), dtype=np.float64)
    except (TypeError, ValueError):
        together = np.empty(0)
    if together.shape == sizes.shape:
        return together
    return np.array([float(message_seconds(float(size))) for size in sizes], dtype=np.float64)
