"""Where environments are, and which of them can be used: only one with a stamp is."""

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
    """How an environment stands."""

    ABSENT = "not installed"
    UNFINISHED = "unfinished"
    OUTDATED = "outdated"
    INSTALLED = "installed"
    VERIFIED = "verified"
    FAILED = "fails its contract"


@dataclass(frozen=True)
class Verification:
    """How the contract of one framework went in an environment, and when."""

    passed: bool
    at: str


@dataclass(frozen=True)
class EnvironmentState:
    """An environment as it is on disk; ``size_bytes`` is None unless it was finished.

    ``verified`` has the frameworks whose contract was run in it: several may share one.
    """

    name: str
    state: State
    directory: Path
    size_bytes: float | None = None
    python: str | None = None
    packages: tuple[str, ...] = ()
    verified: Mapping[str, Verification] = field(default_factory=dict)

    def state_of(self, framework: str) -> State:
        """How it stands for one of its frameworks."""
        known = self.verified.get(framework)
        if self.state is not State.INSTALLED or known is None:
            return self.state
        return State.VERIFIED if known.passed else State.FAILED

    @property
    def usable(self) -> bool:
        """Whether workers may run in it; a changed manifest does not spoil what is there."""
        return self.state not in (State.ABSENT, State.UNFINISHED)


def environments_root() -> Path:
    """The directory of all environments: $PACELINE_ENVIRONMENTS, or the user's data directory."""
    own = os.environ.get("PACELINE_ENVIRONMENTS")
    if own:
        return Path(own).expanduser().absolute()
    data = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(data).expanduser().absolute() / "paceline" / "environments"


def environment_directory(name: str) -> Path:
    """The virtual environment of that name."""
    return environments_root() / name


def log_path(name: str) -> Path:
    """What pip and the compiler said when the environment was made."""
    return environments_root() / f"{name}.log"


def python_in(directory: Path) -> Path:
    """The interpreter of a virtual environment."""
    if sys.platform == "win32":
        return directory / "Scripts" / "python.exe"
    return directory / "bin" / "python"


def read_stamp(name: str) -> dict[str, Any] | None:
    """What was written when the environment was finished; None if it never was."""
    try:
        text = (environment_directory(name) / STAMP).read_text(encoding="utf-8")
        stamp = json.loads(text)
    except (OSError, ValueError):
        return None
    return stamp if isinstance(stamp, dict) else None


def write_stamp(name: str, stamp: dict[str, Any]) -> None:
    """Write the stamp at once or not at all."""
    path = environment_directory(name) / STAMP
    beside = path.with_suffix(".tmp")
    beside.write_text(json.dumps(stamp, indent=2) + "\n", encoding="utf-8")
    beside.replace(path)


def environment_state(spec: EnvironmentSpec) -> EnvironmentState:
    """How an environment stands now."""
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
    """Interpreter of an environment that is finished; None if it is not."""
    found = environment_state(spec)
    return str(python_in(found.directory)) if found.usable else None


def record_verification(name: str, framework: str, passed: bool) -> None:
    """Keep in the stamp of an environment how the contract of a framework went in it."""
    stamp = read_stamp(name)
    if stamp is not None:
        new = Verification(passed, datetime.now(UTC).isoformat(timespec="seconds"))
        others = stamp.get("verified", {})
        write_stamp(name, {**stamp, "verified": {**others, framework: asdict(new)}})


def directory_bytes(directory: Path) -> float:
    """Bytes of all files below a directory, links not followed."""
    total = 0
    for parent, _, files in os.walk(directory):
        for name in files:
            total += os.lstat(os.path.join(parent, name)).st_size  # noqa: PTH118
    return float(total)
