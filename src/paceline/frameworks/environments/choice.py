"""The user's own Python or container image for a framework, instead of Paceline's environment."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from paceline.errors import InputError
from paceline.frameworks.environments.environment_state import environments_root


@dataclass(frozen=True)
class EnvironmentChoice:
    """The path of an interpreter or a container image; exactly one of them."""

    interpreter: str | None = None
    image: str | None = None

    def __post_init__(self) -> None:
        if (self.interpreter is None) == (self.image is None):
            raise InputError("set exactly one of interpreter and image", "see --help")


def chosen(name: str) -> EnvironmentChoice | None:
    """Return the user's choice for an environment; None without one."""
    try:
        fields = json.loads(_path(name).read_text(encoding="utf-8"))
        return EnvironmentChoice(fields.get("interpreter"), fields.get("image"))
    except (OSError, ValueError, InputError):
        return None


def choose(name: str, choice: EnvironmentChoice) -> None:
    """Store a choice until it is removed or replaced."""
    path = _path(name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(choice)) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"cannot write {path}: {error}", "set PACELINE_ENVIRONMENTS to another directory"
        ) from error


def forget(name: str) -> bool:
    """Remove a choice; return whether there was one."""
    path = _path(name)
    existed = path.exists()
    path.unlink(missing_ok=True)
    return existed


def _path(name: str) -> Path:
    return environments_root() / f"{name}.choice.json"
