"""How the environment of each framework is made: pinned requirements, and what to build."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import paceline
from paceline.naming import look_up

REQUIREMENTS = Path(paceline.__file__).parent / "data" / "requirements"
NEWEST_PYTHON = (3, 13)


@dataclass(frozen=True)
class PipStep:
    """One call of pip: a requirements file, options, and variables for what it builds."""

    requirements: str
    options: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        """The requirements file."""
        return REQUIREMENTS / f"{self.requirements}.txt"


@dataclass(frozen=True)
class Recipe:
    """An environment: its pip steps, the module that must import, and what it needs of a machine.

    ``tools`` are programs that building needs; any one of a group separated by ``|`` will do.
    ``disk_bytes`` is the room it takes while it is made. ``compiler_standard`` is the C++
    standard that a build is held to, which older sources set too low.
    """

    name: str
    module: str
    steps: tuple[PipStep, ...]
    disk_bytes: float
    tools: tuple[str, ...] = ()
    oldest_python: tuple[int, int] = (3, 11)
    newest_python: tuple[int, int] = NEWEST_PYTHON
    compiler_standard: str = ""

    @property
    def digest(self) -> str:
        """Changes when anything about the recipe does, pins included."""
        texts = [step.path.read_text(encoding="utf-8") for step in self.steps]
        described = json.dumps([asdict(self), texts], sort_keys=True, default=str)
        return hashlib.sha256(described.encode()).hexdigest()[:16]


COMPILER = ("cmake", "c++|g++|clang++", "make|ninja")
FROM_SOURCE = ("--no-build-isolation", "--no-deps", "--no-binary", "horovod")


def _horovod(framework: str) -> PipStep:
    variables = {
        f"HOROVOD_{'WITH' if name == framework else 'WITHOUT'}_{name}": "1"
        for name in ("PYTORCH", "TENSORFLOW", "MXNET")
    }
    variables |= {
        "HOROVOD_WITH_GLOO": "1",
        "HOROVOD_WITHOUT_MPI": "1",
        "HOROVOD_CPU_OPERATIONS": "GLOO",
    }
    return PipStep("horovod-source", FROM_SOURCE, variables)


RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe("torch", "torch", (PipStep("torch"),), 2.5e9),
        Recipe(
            "horovod-torch",
            "horovod.torch",
            (PipStep("horovod-torch"), _horovod("PYTORCH")),
            3.5e9,
            tools=COMPILER,
            compiler_standard="gnu++20",
        ),
        Recipe(
            "horovod-tensorflow",
            "horovod.tensorflow",
            (PipStep("horovod-tensorflow"), _horovod("TENSORFLOW")),
            3.5e9,
            tools=COMPILER,
            newest_python=(3, 11),
        ),
        Recipe(
            "horovod-mxnet",
            "horovod.mxnet",
            (PipStep("horovod-mxnet"), _horovod("MXNET")),
            2.0e9,
            tools=COMPILER,
            newest_python=(3, 11),
        ),
        Recipe("tensorflow", "tensorflow", (PipStep("tensorflow"),), 3.0e9),
        Recipe("keras", "keras", (PipStep("keras"),), 6.0e9),
        Recipe("jax", "jax", (PipStep("jax"),), 1.5e9),
        Recipe("mxnet", "mxnet", (PipStep("mxnet"),), 1.0e9, newest_python=(3, 11)),
        Recipe("paddle", "paddle", (PipStep("paddle"),), 2.0e9),
        Recipe(
            "chainer",
            "chainer",
            (PipStep("chainer"), PipStep("chainer-source", ("--no-build-isolation", "--no-deps"))),
            1.0e9,
            newest_python=(3, 11),
        ),
    )
}
"""Every environment that can be installed."""


def recipe(name: str) -> Recipe:
    """The recipe of that name, or an error that suggests the nearest."""
    return look_up("environment", name, RECIPES, f"there are: {', '.join(RECIPES)}")
