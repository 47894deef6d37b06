"""What experience adds to a modelled step: factors and seconds that data sheets do not have."""

from dataclasses import dataclass

from paceline.constants import built_from_constants, numbers_of
from paceline.errors import InputError


@dataclass(frozen=True, slots=True)
class StepCorrections:
    """Corrections that the scheduler applies while it places a step; the defaults add nothing.

    ``compute_factor`` multiplies the time of layers that were not measured. ``variation`` is the
    coefficient of variation of workers' times (None: not known, taken as equally fast), of jobs
    on several nodes ``variation_across_nodes`` where that is known. ``unhidden_share`` is the
    part of hidden communication that lengthens the step after all (None: the prior of the
    communication library). ``bandwidth_factor`` is the speed of messages over the modelled one,
    among replicas and inside one. ``overhead_seconds`` pass per step when there is more than one
    replica. ``notes`` say where these come from.
    """

    compute_factor: float = 1.0
    variation: float | None = None
    variation_across_nodes: float | None = None
    unhidden_share: float | None = None
    bandwidth_factor: float = 1.0
    overhead_seconds: float = 0.0
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        share = self.unhidden_share
        if self.compute_factor <= 0 or self.bandwidth_factor <= 0:
            raise InputError("a factor of a step must be above zero", "1 changes nothing")
        if share is not None and not 0.0 <= share < 1.0:
            raise InputError(
                f"an unhidden share of {share} is impossible", "give a fraction from 0 to below 1"
            )

    @property
    def interference(self) -> float | None:
        """The fraction by which computing slows down while a message is in flight.

        Work of 1 s takes ``1 + interference`` under messages, so that of a hidden second
        ``interference / (1 + interference)`` shows: the unhidden share.
        """
        share = self.unhidden_share
        return None if share is None else share / (1.0 - share)

    def variation_on(self, nodes: int) -> float | None:
        """Coefficient of variation of workers on so many nodes; None if not known."""
        if nodes > 1 and self.variation_across_nodes is not None:
            return self.variation_across_nodes
        return self.variation


NO_CORRECTIONS = StepCorrections()


def cluster_corrections(cluster: str) -> StepCorrections:
    """What was found out about a named cluster while it trained; nothing of most."""
    return _by_cluster().get(cluster, NO_CORRECTIONS)


@built_from_constants
def _by_cluster() -> dict[str, StepCorrections]:
    tables = numbers_of("overheads").table("cluster").tables()
    return {
        name: StepCorrections(unhidden_share=share_of(table.values["interference"]))
        for name, table in tables.items()
    }


def share_of(interference: float) -> float:
    """The unhidden share that a slowdown of computing under messages stands for."""
    return interference / (1.0 + interference)
