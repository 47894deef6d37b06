"""Corrections of a modelled step: fitted factors and seconds."""

from dataclasses import dataclass

from paceline.constants import built_from_constants, numbers_of


@dataclass(frozen=True, slots=True)
class StepCorrections:
    """Corrections that the scheduler applies; the defaults change nothing.

    ``compute_factor`` multiplies the time of layers that were not measured. ``variation`` is the
    coefficient of variation of workers' times (None: unknown, assumes equally fast workers);
    ``variation_across_nodes`` replaces it on several nodes if known. ``unhidden_share`` is the part
    of hidden communication that lengthens the step (None: the prior of the communication library).
    ``bandwidth_factor`` is the speed of messages over the modelled one, among replicas and inside
    one. ``overhead_seconds`` is added per step with more than one replica. ``notes`` name the
    sources.
    """

    compute_factor: float = 1.0
    variation: float | None = None
    variation_across_nodes: float | None = None
    unhidden_share: float | None = None
    bandwidth_factor: float = 1.0
    overhead_seconds: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def interference(self) -> float | None:
        """The fraction by which computing slows down while a message is in flight.

        Work of 1 s takes ``1 + interference`` during messages, so of a hidden second
        ``interference / (1 + interference)`` lengthens the step: the unhidden share.
        """
        share = self.unhidden_share
        return None if share is None else share / (1.0 - share)

    def variation_on(self, nodes: int) -> float | None:
        """Coefficient of variation of workers on ``nodes`` nodes; None if unknown."""
        if nodes > 1 and self.variation_across_nodes is not None:
            return self.variation_across_nodes
        return self.variation


NO_CORRECTIONS = StepCorrections()


def cluster_corrections(cluster: str) -> StepCorrections:
    """Corrections measured on a named cluster; none for most clusters."""
    return _by_cluster().get(cluster, NO_CORRECTIONS)


@built_from_constants
def _by_cluster() -> dict[str, StepCorrections]:
    tables = numbers_of("overheads").values["cluster"]
    return {
        name: StepCorrections(unhidden_share=share_of(table["interference"]))
        for name, table in tables.items()
    }


def share_of(interference: float) -> float:
    """The unhidden share that corresponds to an interference."""
    return interference / (1.0 + interference)
