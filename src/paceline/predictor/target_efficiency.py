"""The inverse question: what bandwidth a plan needs to be as efficient as wanted."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from paceline.errors import InputError
from paceline.predictor.prepared import PreparedStep
from paceline.predictor.whatif import on_links

_MOST = 1e6
"""Factor on a bandwidth that leaves nothing of its time."""
_HALVINGS = 40


@dataclass(frozen=True)
class BandwidthNeeded:
    """Bytes/s one way of a link (a card, device or node, as it counts) for an efficiency.

    ``needed`` is None where no bandwidth reaches it; ``reached`` is the efficiency with the
    needed bandwidth, or with a link that costs nothing.
    """

    link: str
    scope: str
    now: float
    now_efficiency: float
    needed: float | None
    reached: float


def bandwidth_needed(prepared: PreparedStep, target: float) -> list[BandwidthNeeded]:
    """For each link that the plan uses, what it alone would have to carry."""
    if not 0 < target <= 1:
        raise InputError(f"an efficiency of {target:g}", "give a share above 0 %, up to 100 %")
    case = prepared.with_fixed_work()
    ideal, now = case.ideal_seconds(), case.seconds()
    cluster = case.cluster
    links = {
        "between nodes": cluster.inter if cluster.nodes > 1 else None,
        "in a node": cluster.intra if cluster.devices_per_node > 1 else None,
    }
    found = []
    for scope, link in links.items():
        if link is None:
            continue
        between = scope == "between nodes"

        def efficiency(factor: float, between: bool = between) -> float:
            return ideal / on_links(case, factor, between=between).seconds()

        factor, reached = _least_factor(efficiency, target)
        needed = None if factor is None else factor * link.known_bandwidth
        found.append(
            BandwidthNeeded(link.name, scope, link.known_bandwidth, ideal / now, needed, reached)
        )
    return found


def _least_factor(
    efficiency: Callable[[float], float], target: float
) -> tuple[float | None, float]:
    """The smallest factor on a bandwidth that reaches ``target``, by halving its logarithm."""
    most = efficiency(_MOST)
    if most < target:
        return None, most
    low, high = math.log(1.0 / _MOST), math.log(_MOST)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if efficiency(math.exp(middle)) < target:
            low = middle
        else:
            high = middle
    return math.exp(high), efficiency(math.exp(high))
