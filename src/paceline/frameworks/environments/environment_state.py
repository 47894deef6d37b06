"""The directory and state of environments; only one with a stamp is used."""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from paceline.frameworks.environments.spec import EnvironmentSpec

STAMP = "paceline.json"


class State(StrEnum):
    """The state of an environment."""

    ABSENT = "not installed"
    UNFINISHED = "unfinished"
    OUTDATED = "outdated"
    INSTALLED = "installed"
    VERIFIED = "verified"
    FAILED = "fails its contract"


@dataclass(frozen=True)
class Verification:
    """The result and time of a framework's contract in an environment."""

    passed: bool
    at: str


@dataclass(frozen=True)
class EnvironmentState:
    """An environment on disk; ``size_bytes`` is None unless it is finished.

    ``verified`` has the frameworks whose contract ran in it: several may share an environment.
    """

    name: str
    state: State
    directory: Path
    size_bytes: float | None = None
    python: str | None = None
    packages: tuple[str, ...] = ()
    verified: Mapping[str, Verification] = field(default_factory=dict)

    def state_of(self, framework: str) -> State:
        known = self.verified.get(framework)
        if self.state is not State.INSTALLED or known is None:
            return self.state
        return State.VERIFIED if known.passed else State.FAILED

    @property
    def usable(self) -> bool:
        """Whether workers may run in it; an outdated environment is usable."""
        return self.state not in (State.ABSENT, State.UNFINISHED)


def environments_root() -> Path:
    """Return the directory of all environments: $PACELINE_ENVIRONMENTS, or user data."""
    own = os.environ.get("PACELINE_ENVIRONMENTS")
    if own:
        return Path(own).expanduser().absolute()
    data = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(data).expanduser().absolute() / "paceline" / "environments"


def environment_directory(name: str) -> Path:
    return environments_root() / name


def log_path(name: str) -> Path:
    return environments_root() / f"{name}.log"


def python_in(directory: Path) -> Path:
    if sys.platform == "win32":
        return directory / "Scripts" / "python.exe"
    return directory / "bin" / "python"


def read_stamp(name: str) -> dict[str, Any] | None:
    """Read the stamp of a finished environment; None without one."""
    try:
        text = (environment_directory(name) / STAMP).read_text(encoding="utf-8")
        stamp = json.loads(text)
    except (OSError, ValueError):
        return None
    return stamp if isinstance(stamp, dict) else None


def write_stamp(name: str, stamp: dict[str, Any]) -> None:
    path = environment_directory(name) / STAMP
    part = path.with_suffix(".tmp")
    part.write_text(json.dumps(stamp, indent=2) + "\n", encoding="utf-8")
    part.replace(path)


def environment_state(spec: EnvironmentSpec) -> EnvironmentState:
    directory = environment_directory(spec.name)
    stamp = read_stamp(spec.name)
    if stamp is None or not python_in(directory).exists():
        state = State.UNFINISHED if directory.exists() else State.ABSENT
        return EnvironmentState(spec.name, state, directory)
    verified = stamp.get("verified", {}).items()
    return EnvironmentState(
        spec.name,
        State.INSTALLED if stamp.get("digest") == spec.digest else State.OUTDATED,
        directory,
        stamp["size_bytes"],
        stamp["python"],
        tuple(stamp["packages"]),
        {name: Verification(**one) for name, one in verified if isinstance(one, dict)},
    )


def installed_python(spec: EnvironmentSpec) -> str | None:
    """Return the interpreter of a finished environment; None if it is not finished."""
    found = environment_state(spec)
    return str(python_in(found.directory)) if found.usable else None


def record_verification(name: str, framework: str, passed: bool) -> None:
    """Record the result of a framework's contract in the stamp of an environment."""
    stamp = read_stamp(name)
    if stamp is not None:
        new = Verification(passed, datetime.now(UTC).isoformat(timespec="seconds"))
        others = stamp.get("verified", {})
        write_stamp(name, {**stamp, "verified": {**others, framework: asdict(new)}})


def directory_bytes(directory: Path) -> float:
    """Return the size of all files below a directory, without following links."""
    total = 0
    for parent, _, files in os.walk(directory):
        for name in files:
            total += os.lstat(os.path.join(parent, name)).st_size
    return float(total)
