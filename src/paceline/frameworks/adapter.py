"""A framework that Paceline runs: its worker, and the requirements and features of the worker."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paceline.frameworks.operations import ends_in_loss, missing_operations


@dataclass(frozen=True)
class FrameworkAdapter:
    """One framework: ``worker`` is the training script, ``module`` the module it imports.

    ``environment`` names the environment of the framework; without one, the worker runs in
    Paceline's interpreter. ``uses`` are other families whose modules the worker imports.
    ``operations`` are those the worker can build (None: all). ``variables`` are set for
    the worker. ``synchronous`` is false for asynchronous updates;
    ``launcher`` names the launcher that several ranks need, if any. ``profile`` is the
    predictor profile, by default of the same name. ``evaluates``: the worker
    trains by epochs on real data and reports its accuracy after each.
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
        return f"{self._variable}_PYTHON"

    @property
    def image_variable(self) -> str:
        return f"{self._variable}_IMAGE"

    @property
    def install(self) -> str:
        if self.environment:
            return f"paceline frameworks install {self.name}"
        return f"install '{self.module}' in Paceline's Python"

    @property
    def _variable(self) -> str:
        return f"PACELINE_{(self.environment or self.name).upper().replace('-', '_')}"

    def claims(self, graph: Mapping[str, Any]) -> bool:
        """Return whether the worker can build the network of a graph (its JSON form)."""
        if self.operations is None:
            return True
        return ends_in_loss(graph) and not missing_operations(graph, self.operations)
