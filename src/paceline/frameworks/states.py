"""The state of every framework: installed, verified, and the environment of its worker."""

import sys
from dataclasses import dataclass

from paceline.errors import PacelineError
from paceline.frameworks.adapter import FrameworkAdapter
from paceline.frameworks.command import interpreter, runs_in_our_environment
from paceline.frameworks.environments.choice import chosen
from paceline.frameworks.environments.environment_state import EnvironmentState, environment_state
from paceline.frameworks.framework_registry import environments, frameworks


@dataclass(frozen=True)
class FrameworkState:
    """One framework and the environment in which it would run.

    ``path`` is a directory or an interpreter, or the name of an image. Unknown values of an
    environment that is not installed are None.
    """

    name: str
    environment: str
    state: str
    size_bytes: float | None
    python: str | None
    verified_at: str | None
    path: str


def framework_states() -> list[FrameworkState]:
    return [_state(wanted) for wanted in frameworks().values()]


def _state(wanted: FrameworkAdapter) -> FrameworkState:
    spec = environments().get(wanted.environment)
    found = None if spec is None else environment_state(spec)
    verified = None if found is None else found.verified.get(wanted.name)
    state, path = _state_and_path(wanted, found)
    return FrameworkState(
        name=wanted.name,
        environment=wanted.environment,
        state=state,
        size_bytes=found.size_bytes if found else None,
        python=found.python if found else None,
        verified_at=verified.at if verified else None,
        path=path,
    )


def _state_and_path(wanted: FrameworkAdapter, found: EnvironmentState | None) -> tuple[str, str]:
    choice = chosen(wanted.environment) if found else None
    if choice is not None and choice.image:
        return "own image", choice.image
    try:
        if found is None or not runs_in_our_environment(wanted):
            path = interpreter(wanted)
            ours = path == sys.executable
            return "in Paceline's Python" if ours else "own Python", path
    except PacelineError:
        return str(found.state) if found else "not installed", ""
    return str(found.state_of(wanted.name)), str(found.directory)
