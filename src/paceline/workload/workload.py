"""Work of one data-parallel replica per step: graph, batch, precision, optimizer."""

from dataclasses import dataclass, replace

from paceline.errors import InputError
from paceline.workload import zoo
from paceline.workload.cost import GraphCost, GraphProfile
from paceline.workload.graph import Graph
from paceline.workload.precision import precision as find_precision


@dataclass(frozen=True, repr=False)
class Workload:
    """A network and its training options.

    ``batch`` is the number of samples per data-parallel replica and optimizer step. ``sequence``
    is the sequence length, by default the graph's own. ``precision`` and ``optimizer`` are names.
    Frozen weights take ``frozen_bytes`` each and are converted whenever a GEMM reads them; None
    for the width of trained weights.
    """

    graph: Graph
    batch: int
    sequence: int | None = None
    precision: str = "fp32"
    optimizer: str = "sgd_momentum"
    frozen_bytes: float | None = None

    def __post_init__(self) -> None:
        if type(self.batch) is not int or self.batch < 1:
            raise InputError(f"batch must be at least 1 (got {self.batch})", "give 1 or more")
        if self.sequence is None and self.graph.uses_sequence:
            object.__setattr__(self, "sequence", self.graph.sequence)
        object.__setattr__(self, "precision", find_precision(self.precision).name)

    def __repr__(self) -> str:
        tokens = f" x {self.sequence} tokens" if self.sequence is not None else ""
        how = f"batch {self.batch}{tokens}, {self.precision}, {self.optimizer}"
        return f"<Workload {self.graph.name}: {how}>"

    @classmethod
    def of(
        cls,
        name: str,
        batch: int,
        sequence: int | None = None,
        precision: str = "fp32",
        optimizer: str = "sgd_momentum",
    ) -> "Workload":
        """A network of the zoo with as many learned positions as ``sequence`` needs."""
        return cls(zoo.build(name, sequence), batch, sequence, precision, optimizer)

    @property
    def profile(self) -> GraphProfile:
        return self.graph.profile(self.sequence, self.precision)

    @property
    def cost(self) -> GraphCost:
        """Costs of a step of one replica."""
        return self.graph.cost(self.batch, self.sequence, self.precision)

    @property
    def tokens_per_sample(self) -> int:
        """Sequence length; 1 if the network has none."""
        return self.sequence if self.sequence is not None else 1

    def with_batch(self, batch: int) -> "Workload":
        return replace(self, batch=batch)

    def global_batch(self, replicas: int) -> int:
        """Samples per optimizer step of all ``replicas``."""
        return self.batch * replicas
