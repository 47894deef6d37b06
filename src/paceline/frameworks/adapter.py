"""A framework that can be run: its worker, and what the worker needs and can do."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paceline.frameworks.operations import ends_in_loss, missing_operations


@dataclass(frozen=True)
class FrameworkAdapter:
    """One framework: ``worker`` is the script that trains, ``module`` what it must import.

    ``environment`` names the environment it is installed in; without one, the worker runs in
    Paceline's interpreter. ``uses`` are the families whose modules the worker imports beside its
    own. ``operations`` are those its worker can build, None being all. ``variables`` are set for
    the worker. ``synchronous`` is false where ranks update without waiting for each other;
    ``launcher`` names what starts several ranks, where that cannot be any. ``profile`` is the
    predictor's name for what it does, its own name where none is given. ``evaluates``: the worker
    trains by epochs on real data, and says its accuracy after each.
    """

    name: str
    worker: Path
    module: str
    environment: str = ""
    uses: tuple[str, ...] = ()
    operations: frozenset[str] | None = None
    instruments: tuple[str, ...] = ("none", "difference")
    variables: Mapping[str, str] = field(default_factory=dict)
    synchronous: bool = True
    launcher: str = ""
    profile: str = ""
    evaluates: bool = False

    @property
    def interpreter_variable(self) -> str:
        """The environment variable that names an interpreter to run the worker in."""
        return f"{self._variable}_PYTHON"

    @property
    def image_variable(self) -> str:
        """The environment variable that names a container image to run the worker in."""
        return f"{self._variable}_IMAGE"

    @property
    def install(self) -> str:
        """What to do to have it."""
        if self.environment:
            return f"paceline frameworks install {self.name}"
        return f"install '{self.module}' in Paceline's Python"

    @property
    def _variable(self) -> str:
        return f"PACELINE_{(self.environment or self.name).upper().replace('-', '_')}"

    def claims(self, graph: Mapping[str, Any]) -> bool:
        """Whether the worker can build the network of a graph (its JSON form)."""
        if self.operations is None:
            return True
        return ends_in_loss(graph) and not missing_operations(graph, self.operations)
