"""Frameworks that can be run: their worker script, and the interpreter it runs in."""

import importlib.util
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from paceline.errors import EnvironmentUnusableError
from paceline.naming import look_up

WORKERS = Path(__file__).parent / "workers"


@dataclass(frozen=True)
class Framework:
    """One framework: ``worker`` is the script that trains, ``module`` what it must import.

    ``interpreter_variable`` is the environment variable by which a user points at an interpreter
    of his own; without it the worker runs in Paceline's interpreter. ``install`` is the pip line.
    """

    name: str
    worker: Path
    module: str
    interpreter_variable: str
    install: str


FRAMEWORKS = {
    "torch-ddp": Framework(
        name="torch-ddp",
        worker=WORKERS / "torch_ddp.py",
        module="torch",
        interpreter_variable="PACELINE_TORCH_PYTHON",
        install="pip install torch==2.13.0",
    ),
}


def framework(name: str) -> Framework:
    """The framework of that name, or an error that suggests the nearest."""
    return look_up("framework", name, FRAMEWORKS, f"measured here: {', '.join(FRAMEWORKS)}")


def interpreter(chosen: Framework) -> str:
    """Path of the Python in which the framework's worker runs, checked to have the framework."""
    own = os.environ.get(chosen.interpreter_variable)
    if not own:
        if importlib.util.find_spec(chosen.module) is None:
            raise EnvironmentUnusableError(
                f"{chosen.name} needs the Python module '{chosen.module}', which is not here",
                f"{chosen.install}, or point ${chosen.interpreter_variable} at a Python with it",
            )
        return sys.executable
    path = shutil.which(own)
    if path is None or not _can_import(path, chosen.module):
        raise EnvironmentUnusableError(
            f"${chosen.interpreter_variable} is '{own}', which "
            + ("cannot be run" if path is None else f"cannot import '{chosen.module}'"),
            f"{chosen.install} there, or unset the variable",
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
