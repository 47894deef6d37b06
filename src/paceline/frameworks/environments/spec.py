"""The specification of a framework's environment: pinned requirements and build settings."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

from paceline.errors import InputError
from paceline.file_keys import NOT_IN_FILE, Key, quantity
from paceline.units import parse_bytes

OLDEST_PYTHON, NEWEST_PYTHON = (3, 11), (3, 13)


def relative_path(value: Any) -> Path:
    """A path in the folder of the file."""
    if not isinstance(value, str):
        raise InputError(f"expected a file name, not {value!r}", 'write it in "quotes"')
    return Path(value)


def _version(value: Any) -> tuple[int, int]:
    major, _, minor = str(value).partition(".")
    if not isinstance(value, str) or not (major.isdecimal() and minor.isdecimal()):
        raise InputError(f"invalid version {value!r}", 'write for example "3.11"')
    return int(major), int(minor)


FileName = Annotated[Path, Key(parse=relative_path)]
Version = Annotated[tuple[int, int], Key(parse=_version)]


@dataclass(frozen=True)
class PipStep:
    """One call of pip: a requirements file, options and environment variables."""

    requirements: FileName
    options: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class EnvironmentSpec:
    """An environment: its pip steps, the module that must import, and its requirements.

    ``tools`` are programs for building; one of a group separated by ``|`` suffices.
    ``disk_bytes`` is the disk space during installation. ``compiler_standard`` is the C++
    standard of a build, where the sources set one that is too old.
    """

    name: Annotated[str, NOT_IN_FILE]
    module: str
    steps: tuple[PipStep, ...]
    disk_bytes: Annotated[float, quantity(parse_bytes, "disk")]
    tools: tuple[str, ...] = ()
    oldest_python: Version = OLDEST_PYTHON
    newest_python: Version = NEWEST_PYTHON
    compiler_standard: str = ""

    @property
    def digest(self) -> str:
        """A hash of the environment with its pins, independent of its folder."""
        texts = [step.requirements.read_text(encoding="utf-8") for step in self.steps]
        described = json.dumps([asdict(self), texts], sort_keys=True, default=_name)
        return hashlib.sha256(described.encode()).hexdigest()[:16]


def _name(path: Path) -> str:
    return path.name
