"""The command that starts a framework's worker, in an interpreter or a container.

A worker imports its framework and, as top-level modules, those of its own folder, of the
families it uses, and of ``runtime``: these folders are its search path.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from paceline.errors import EnvironmentUnusableError, InputError
from paceline.frameworks.adapter import FrameworkAdapter
from paceline.frameworks.environments.choice import EnvironmentChoice, choose, chosen, forget
from paceline.frameworks.environments.environment_state import installed_python
from paceline.frameworks.framework_registry import environments, manifests
from paceline.naming import look_up

RUNTIME = Path(__file__).parent / "runtime"
SEARCH_PATH = "PYTHONPATH"

PASSED = (
    *("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"),
    *("PACELINE_WATCH_STDIN", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"),
    *("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "HOROVOD_GLOO_IFACE"),
)
"""Environment variables of a rank that are passed to its container."""


@dataclass(frozen=True)
class WorkerCommand:
    """The command of a rank: ``arguments``, with ``variables`` set."""

    arguments: tuple[str, ...]
    variables: Mapping[str, str]


def worker_command(wanted: FrameworkAdapter, directory: Path) -> WorkerCommand:
    """Return the command of a framework's worker, without the job.

    A container mounts the launch ``directory`` and the folders of the worker at the same paths.
    """
    worker, variables = str(wanted.worker), worker_variables(wanted)
    image = _image(wanted)
    if image is not None:
        return WorkerCommand((*_in_container(image, wanted, directory), worker), variables)
    return WorkerCommand((interpreter(wanted), worker), variables)


def search_path(wanted: FrameworkAdapter) -> list[Path]:
    """Return the folders whose modules a worker imports as top-level modules."""
    hint = "'uses' in its manifest must name families of frameworks"
    used = [look_up("family", name, manifests(), hint).folder for name in wanted.uses]
    return [wanted.worker.parent, *used, RUNTIME]


def worker_variables(wanted: FrameworkAdapter) -> dict[str, str]:
    """Return the environment variables of a worker; PYTHONPATH is extended."""
    before = os.environ.get(SEARCH_PATH)
    folders = [*map(str, search_path(wanted)), *([before] if before else [])]
    return {**wanted.variables, SEARCH_PATH: os.pathsep.join(folders)}


def interpreter(wanted: FrameworkAdapter) -> str:
    """Return the path of the Python for the framework's worker; check that it has the framework.

    In order: the user's choice, the installed environment, Paceline's Python.
    """
    own, source = os.environ.get(wanted.interpreter_variable), f"${wanted.interpreter_variable}"
    choice = chosen(wanted.environment) if wanted.environment else None
    if not own and choice is not None and choice.interpreter:
        own, source = choice.interpreter, f"the interpreter chosen for {wanted.name}"
    if own:
        return _own_interpreter(wanted, own, source)
    installed = _installed(wanted)
    if installed is not None:
        return installed
    if importlib.util.find_spec(wanted.module.split(".")[0]) is None:
        raise EnvironmentUnusableError(
            f"{wanted.name} needs the Python module '{wanted.module}', which is not installed",
            f"run '{wanted.install}', or set ${wanted.interpreter_variable}",
        )
    return sys.executable


def check_runnable(wanted: FrameworkAdapter) -> None:
    """Raise unless the framework's worker can be started."""
    if _image(wanted) is None:
        interpreter(wanted)
    else:
        _container_engine(wanted)


def runs_in_our_environment(wanted: FrameworkAdapter) -> bool:
    if not wanted.environment or _image(wanted) is not None:
        return False
    return interpreter(wanted) == _installed(wanted)


def run_in(wanted: FrameworkAdapter, choice: EnvironmentChoice | None) -> None:
    """Set the user's interpreter or image of a framework; None restores Paceline's environment."""
    if not wanted.environment:
        raise InputError(
            f"{wanted.name} has no environment",
            f"set ${wanted.interpreter_variable} to a Python with '{wanted.module}'",
        )
    forget(wanted.environment)
    if choice is None:
        return
    choose(wanted.environment, choice)
    try:
        check_runnable(wanted)
    except Exception:
        forget(wanted.environment)
        raise


def _installed(wanted: FrameworkAdapter) -> str | None:
    spec = environments().get(wanted.environment)
    return None if spec is None else installed_python(spec)


def _own_interpreter(wanted: FrameworkAdapter, own: str, source: str) -> str:
    path = shutil.which(own)
    if path is None or not _can_import(path, wanted.module):
        raise EnvironmentUnusableError(
            f"{source} ('{own}') "
            + ("cannot be run" if path is None else f"cannot import '{wanted.module}'"),
            f"run '{wanted.install}', or install '{wanted.module}' in that Python",
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


def _image(wanted: FrameworkAdapter) -> str | None:
    own = os.environ.get(wanted.image_variable)
    choice = chosen(wanted.environment) if wanted.environment else None
    return own or (choice.image if choice else None)


def _container_engine(wanted: FrameworkAdapter) -> str:
    for name in ("docker", "podman"):
        found = shutil.which(name)
        if found:
            return found
    raise EnvironmentUnusableError(
        f"{wanted.name} runs in a container, but neither docker nor podman is installed",
        f"install one, or unset ${wanted.image_variable}",
    )


def _in_container(image: str, wanted: FrameworkAdapter, directory: Path) -> Sequence[str]:
    folders = search_path(wanted)
    path = f"{SEARCH_PATH}={os.pathsep.join(map(str, folders))}"
    variables = [word for name in (*PASSED, *wanted.variables, path) for word in ("-e", name)]
    mounts = [f"{folder}:{folder}:ro" for folder in folders] + [f"{directory}:{directory}"]
    options = ["run", "--rm", "-i", "--init", "--network", "host", "--ipc", "host"]
    volumes = [word for mount in mounts for word in ("-v", mount)]
    return (_container_engine(wanted), *options, *variables, *volumes, image, "python")
