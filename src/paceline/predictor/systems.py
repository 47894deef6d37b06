"""Systems whose behaviour in training is known: constants beyond the data sheets of parts."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields

from paceline.constants import built_from_constants, numbers_of
from paceline.errors import InputError
from paceline.predictor.step_costs import CollectiveSeconds


@dataclass(frozen=True)
class System:
    """What was measured of one cluster while it trained; None was not measured.

    ``interference`` is the fraction by which computing slows down under communication,
    ``jitter`` the coefficient of variation of workers' step times, and
    ``message_overhead_seconds`` what a message takes from the device. The all-reduce among N
    nodes takes ``latency + latency_per_doubling log2 N + 2 (N-1)/N bytes seconds_per_byte``.
    """

    name: str
    interference: float | None = None
    jitter: float | None = None
    message_overhead_seconds: float | None = None
    latency_seconds: float | None = None
    latency_per_doubling_seconds: float = 0.0
    seconds_per_byte: float | None = None

    def all_reduce(self, workers: int) -> CollectiveSeconds | None:
        """Seconds of an all-reduce among ``workers``; None for one, which sends nothing."""
        if workers == 1:
            return None
        if self.latency_seconds is None or self.seconds_per_byte is None:
            raise InputError(
                f"no all-reduce was measured on {self.name}",
                "predict it from the links of the cluster instead",
            )
        start = self.latency_seconds + self.latency_per_doubling_seconds * math.log2(workers)
        per_byte = 2.0 * (workers - 1) / workers * self.seconds_per_byte
        return lambda size: start + per_byte * size


@built_from_constants
def systems() -> Mapping[str, System]:
    """Every known system by the name of its cluster."""
    known = tuple(field.name for field in fields(System) if field.name != "name")
    found = {}
    for name, table in numbers_of("overheads").table("cluster").tables().items():
        table.check_keys(known)
        found[name] = System(name, **table.quantities(float, may_be_zero=True))
    return found


def system_of(cluster: str) -> System:
    """What is known of a cluster: a `System` of unknowns when nothing is."""
    return systems().get(cluster, System(cluster))
