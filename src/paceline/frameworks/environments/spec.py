"""The specification of a framework's environment: pinned requirements and build settings."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

OLDEST_PYTHON, NEWEST_PYTHON = (3, 11), (3, 13)


@dataclass(frozen=True)
class PipStep:
    """One call of pip: a requirements file, options and environment variables."""

    requirements: Path
    options: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class EnvironmentSpec:
    """An environment: its pip steps, the module that must import, and its requirements.

    ``tools`` are programs for building; one of a group separated by ``|`` suffices.
    ``disk_bytes`` is the disk space during installation. ``compiler_standard`` is the C++
    standard of a build, where the sources set one that is too old.
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
        """A hash of the environment with its pins, independent of its folder."""
        texts = [step.requirements.read_text(encoding="utf-8") for step in self.steps]
        described = json.dumps([asdict(self), texts], sort_keys=True, default=_name)
        return hashlib.sha256(described.encode()).hexdigest()[:16]


def _name(path: Path) -> str:
    return path.name
