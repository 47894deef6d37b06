"""The order in which a priority queue sends messages that become ready over time."""

import heapq
from collections.abc import Sequence


def priority_order(
    priorities: Sequence[float], ready_seconds: Sequence[float], seconds: Sequence[float]
) -> list[int]:
    """Indices in the order in which one link serves them.

    Whenever the link is free it takes the ready message of the lowest priority number, and
    waits for the next one to get ready if there is none. A message that has begun is finished.
    """
    arrivals = sorted(range(len(priorities)), key=lambda i: (ready_seconds[i], priorities[i], i))
    waiting: list[tuple[float, int]] = []
    order: list[int] = []
    clock = 0.0
    arrived = 0
    while len(order) < len(priorities):
        if not waiting:
            clock = max(clock, ready_seconds[arrivals[arrived]])
        while arrived < len(arrivals) and ready_seconds[arrivals[arrived]] <= clock:
            index = arrivals[arrived]
            heapq.heappush(waiting, (priorities[index], index))
            arrived += 1
        _, index = heapq.heappop(waiting)
        order.append(index)
        clock += seconds[index]
    return order
