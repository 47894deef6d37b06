"""A framework that Paceline runs: its worker, and the requirements and features of the worker."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from paceline.errors import InputError
from paceline.file_keys import NOT_IN_FILE, Key
from paceline.frameworks.environments.spec import FileName
from paceline.frameworks.operations import COMMON_OPERATIONS, ends_in_loss, missing_operations


def _operations(value: Any) -> frozenset[str] | None:
    if value in ("all", "common"):
        return None if value == "all" else COMMON_OPERATIONS
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise InputError(
            f"invalid operations {value!r}", 'write "all", "common" or a list of names'
        )
    return frozenset(value)


@dataclass(frozen=True)
class FrameworkAdapter:
    """One framework: ``worker`` is the training script, ``module`` the module it imports.

    ``environment`` names the environment of the framework; without one, the worker runs in
    Paceline's interpreter. ``uses`` are other families whose modules the worker imports.
    ``operations`` are those the worker can build (None: all). ``variables`` are set for
    the worker. ``synchronous`` is false for asynchronous updates;
    ``launcher`` names the launcher that several ranks need, if any. ``profile`` is the
    predictor profile, by default of the same name. ``evaluates``: the worker
    trains by epochs on real data and reports its accuracy after each. ``optimizers`` and
    ``precisions`` are those of the worker.
    """

    name: Annotated[str, NOT_IN_FILE]
    worker: FileName
    module: str
    operations: Annotated[frozenset[str] | None, Key(parse=_operations)]
    environment: str = ""
    uses: tuple[str, ...] = ()
    instruments: tuple[str, ...] = ("none", "difference")
    variables: Mapping[str, str] = field(default_factory=dict)
    synchronous: bool = True
    launcher: Annotated[str, Key(choices=("", "mpiexec"))] = ""
    profile: str = ""
    evaluates: bool = False
    optimizers: tuple[str, ...] = ("sgd",)
    precisions: tuple[str, ...] = ("fp32",)

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
