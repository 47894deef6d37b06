"""What the environment of a framework is made of: pinned requirements, and what to build."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

OLDEST_PYTHON, NEWEST_PYTHON = (3, 11), (3, 13)


@dataclass(frozen=True)
class PipStep:
    """One call of pip: a requirements file, options, and variables for what it builds."""

    requirements: Path
    options: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class EnvironmentSpec:
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
    oldest_python: tuple[int, int] = OLDEST_PYTHON
    newest_python: tuple[int, int] = NEWEST_PYTHON
    compiler_standard: str = ""

    @property
    def digest(self) -> str:
        """Changes when anything about the environment does, pins included, but not its folder."""
        texts = [step.requirements.read_text(encoding="utf-8") for step in self.steps]
        described = json.dumps([asdict(self), texts], sort_keys=True, default=_name)
        return hashlib.sha256(described.encode()).hexdigest()[:16]


def _name(path: Path) -> str:
    return path.name
