"""Frameworks that can be run: their worker script, and the interpreter or image it runs in."""

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from paceline.errors import EnvironmentUnusableError
from paceline.measurement.environments import RECIPES, chosen, installed_python
from paceline.measurement.workers.layer_shapes import LOSSES, OUTPUTS
from paceline.naming import look_up

WORKERS = Path(__file__).parent / "workers"
COMMON_OPERATIONS = frozenset(OUTPUTS) | {"cross_entropy", "elementwise_loss", "weighted_sum"}
"""Operations that every worker has; PyTorch's have all of the graph's."""

COMMON_ACTIVATIONS = frozenset({"relu", "relu6", "sigmoid", "tanh", "gelu", "gelu_tanh", "silu"})

PASSED = (
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "PACELINE_WATCH_STDIN",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
)
"""Variables of a rank that its container must see."""


@dataclass(frozen=True)
class Framework:
    """One framework: ``worker`` is the script that trains, ``module`` what it must import.

    ``interpreter_variable`` is the environment variable by which a user points at an interpreter
    of his own; with ``_IMAGE`` for ``_PYTHON``, at a container image. ``install`` is the line
    that installs it. ``environment`` names its recipe; without one, the worker runs in Paceline's
    interpreter. ``operations`` are those its worker can build, None being all. ``variables`` are
    set for the worker. ``synchronous`` is false where ranks update without waiting for each
    other; ``launcher`` names what starts several ranks, where that cannot be any.
    """

    name: str
    worker: Path
    module: str
    interpreter_variable: str
    install: str
    environment: str = ""
    operations: frozenset[str] | None = None
    instruments: tuple[str, ...] = ("none", "difference")
    variables: Mapping[str, str] = field(default_factory=dict)
    synchronous: bool = True
    launcher: str = ""

    @property
    def image_variable(self) -> str:
        """The environment variable that names a container image to run the worker in."""
        return self.interpreter_variable.removesuffix("_PYTHON") + "_IMAGE"

    def claims(self, graph: Mapping[str, Any]) -> bool:
        """Whether the worker can build the network of a graph (its JSON form)."""
        if self.operations is None:
            return True
        return ends_in_loss(graph) and not missing_operations(graph, self.operations)


def ends_in_loss(graph: Mapping[str, Any]) -> bool:
    """Whether the output of a graph (its JSON form) is a loss."""
    kinds = {node["name"]: node["op"] for node in graph["nodes"]}
    return kinds[graph["output"]] in LOSSES


def missing_operations(graph: Mapping[str, Any], operations: Container[str]) -> list[str]:
    """Operations of a graph (its JSON form) that something with only these cannot build.

    Of some operations only common forms are built: convolutions and pools of images, not both
    strided and dilated, norms of an odd number of channels, the functions that all frameworks
    have.
    """
    return sorted(
        {
            node["op"]
            for node in graph["nodes"]
            if node["op"] not in operations or not _has_common_form(node)
        }
    )


def _has_common_form(node: Mapping[str, Any]) -> bool:
    if len(node.get("kernel", (1, 1))) != 2 or node.get("transposed"):
        return False
    if node.get("ceil") and (node["op"] != "max_pool" or any(node["padding"])):
        return False
    if max(node.get("dilation", (1,))) > 1 and max(node["stride"]) > 1:
        return False
    if node["op"] == "local_response_norm":
        return bool(node["size"] % 2)
    if node["op"] == "activation":
        return node["function"] in COMMON_ACTIVATIONS
    return bool(node.get("function", "binary_cross_entropy") == "binary_cross_entropy")


def _framework(
    name: str, worker: str, environment: str, module: str | None = None, **more: Any
) -> Framework:
    variable = environment.upper().replace("-", "_")
    return Framework(
        name,
        WORKERS / f"{worker}.py",
        module or RECIPES[environment].module,
        f"PACELINE_{variable}_PYTHON",
        f"paceline frameworks install {name}",
        environment,
        **more,
    )


FRAMEWORKS = {
    one.name: one
    for one in (
        _framework(
            "torch-ddp",
            "torch_ddp",
            "torch",
            instruments=("none", "difference", "phases", "layers"),
        ),
        _framework("torch-fsdp", "torch_fsdp", "torch"),
        _framework("torch-tp", "torch_tp", "torch"),
        _framework("torch-pp", "torch_pp", "torch"),
        _framework("horovod-torch", "horovod_torch", "horovod-torch"),
        _framework("tensorflow", "tensorflow_mirrored", "tensorflow", operations=COMMON_OPERATIONS),
        _framework(
            "horovod-tensorflow",
            "horovod_tensorflow",
            "horovod-tensorflow",
            operations=COMMON_OPERATIONS,
        ),
        _framework(
            "keras", "keras_tensorflow", "keras", "tensorflow", operations=COMMON_OPERATIONS
        ),
        _framework("keras-jax", "keras_jax", "keras", "keras", operations=COMMON_OPERATIONS),
        _framework("keras-torch", "keras_torch", "keras", "keras", operations=COMMON_OPERATIONS),
        _framework("jax", "jax_sharded", "jax", operations=COMMON_OPERATIONS),
        _framework("horovod-mxnet", "horovod_mxnet", "horovod-mxnet", operations=COMMON_OPERATIONS),
        _framework("mxnet", "mxnet_kvstore", "mxnet", operations=COMMON_OPERATIONS),
        _framework(
            "mxnet-server",
            "mxnet_kvstore",
            "mxnet",
            operations=COMMON_OPERATIONS,
            variables={"PACELINE_MXNET_UPDATE": "server"},
        ),
        _framework(
            "mxnet-async",
            "mxnet_kvstore",
            "mxnet",
            operations=COMMON_OPERATIONS,
            variables={
                "PACELINE_MXNET_KVSTORE": "dist_async",
                "PACELINE_MXNET_UPDATE": "server",
            },
            synchronous=False,
        ),
        _framework("paddle", "paddle_parallel", "paddle", operations=COMMON_OPERATIONS),
        _framework(
            "chainer", "chainer_mpi", "chainer", operations=COMMON_OPERATIONS, launcher="mpiexec"
        ),
    )
}


def framework(name: str) -> Framework:
    """The framework of that name, or an error that suggests the nearest."""
    return look_up("framework", name, FRAMEWORKS, f"measured here: {', '.join(FRAMEWORKS)}")


@dataclass(frozen=True)
class WorkerCommand:
    """How to start a rank: ``arguments``, with ``variables`` set."""

    arguments: tuple[str, ...]
    variables: Mapping[str, str]


def worker_command(wanted: Framework, directory: Path) -> WorkerCommand:
    """The command of a framework's worker, without the job; ``directory`` has the launch's files.

    A container sees that directory and the workers, at the paths they have here.
    """
    image = _image(wanted)
    if image is not None:
        inside = _in_container(image, wanted, directory)
        return WorkerCommand((*inside, str(wanted.worker)), wanted.variables)
    return WorkerCommand((interpreter(wanted), str(wanted.worker)), wanted.variables)


def interpreter(wanted: Framework) -> str:
    """Path of the Python in which the framework's worker runs, checked to have the framework.

    The user's own comes first, then the environment installed for it, then Paceline's Python.
    """
    own, source = os.environ.get(wanted.interpreter_variable), f"${wanted.interpreter_variable}"
    choice = chosen(wanted.environment) if wanted.environment else None
    if not own and choice is not None and choice.interpreter:
        own, source = choice.interpreter, f"the interpreter chosen for {wanted.name}"
    if own:
        return _own_interpreter(wanted, own, source)
    if wanted.environment:
        installed = installed_python(RECIPES[wanted.environment])
        if installed is not None:
            return installed
    if importlib.util.find_spec(wanted.module.split(".")[0]) is None:
        raise EnvironmentUnusableError(
            f"{wanted.name} needs the Python module '{wanted.module}', which is not here",
            f"{wanted.install}, or point ${wanted.interpreter_variable} at a Python with it",
        )
    return sys.executable


def check_runnable(wanted: Framework) -> None:
    """Raise, with what to do, unless the framework's worker can be started."""
    if _image(wanted) is None:
        interpreter(wanted)
    else:
        _container_engine(wanted)


def runs_in_our_environment(wanted: Framework) -> bool:
    """Whether its worker would run in the environment that Paceline installed for it."""
    if not wanted.environment or _image(wanted) is not None:
        return False
    return interpreter(wanted) == installed_python(RECIPES[wanted.environment])


def _own_interpreter(wanted: Framework, own: str, source: str) -> str:
    path = shutil.which(own)
    if path is None or not _can_import(path, wanted.module):
        raise EnvironmentUnusableError(
            f"{source} is '{own}', which "
            + ("cannot be run" if path is None else f"cannot import '{wanted.module}'"),
            f"{wanted.install}, or install '{wanted.module}' there",
        )
    return path


@lru_cache(maxsize=8)
def _can_import(path: str, module: str) -> bool:
    try:
        check = subprocess.run(
            [path, "-c", f"import {module}"], capture_output=True, timeout=120, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return check.returncode == 0


def _image(wanted: Framework) -> str | None:
    own = os.environ.get(wanted.image_variable)
    choice = chosen(wanted.environment) if wanted.environment else None
    return own or (choice.image if choice else None)


def _container_engine(wanted: Framework) -> str:
    for name in ("docker", "podman"):
        found = shutil.which(name)
        if found:
            return found
    raise EnvironmentUnusableError(
        f"{wanted.name} is to run in a container, and neither docker nor podman is here",
        f"install one, or unset ${wanted.image_variable}",
    )


def _in_container(image: str, wanted: Framework, directory: Path) -> Sequence[str]:
    variables = [word for name in (*PASSED, *wanted.variables) for word in ("-e", name)]
    mounts = ["-v", f"{WORKERS}:{WORKERS}:ro", "-v", f"{directory}:{directory}"]
    engine = _container_engine(wanted)
    options = ["run", "--rm", "-i", "--init", "--network", "host", "--ipc", "host"]
    return (engine, *options, *variables, *mounts, image, "python")
