"""Public functions on the environments of frameworks: list, install, verify, remove, choose."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from paceline.errors import InputError, PacelineError
from paceline.frameworks.adapter import FrameworkAdapter
from paceline.frameworks.command import interpreter, runs_in_our_environment
from paceline.frameworks.environments.choice import chosen
from paceline.frameworks.environments.environment_state import EnvironmentState, environment_state
from paceline.frameworks.framework_registry import environments, frameworks
from paceline.render.result import Part, PublicResult
from paceline.render.table import Column, Table

if TYPE_CHECKING:
    from paceline.testing.contract import Result


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


def _ignore(_: object) -> None:
    """The default of callbacks."""


@dataclass(frozen=True, repr=False)
class InstalledFrameworks(PublicResult):
    """Frameworks with the state and size of their environments."""

    schema: ClassVar[str] = "frameworks/2"
    frameworks: tuple[FrameworkState, ...]

    @property
    def missing(self) -> list[str]:
        """Names of the frameworks that are not installed."""
        return [one.name for one in self.frameworks if one.state == "not installed"]

    def summary(self) -> str:
        """The number of installed frameworks."""
        installed = len(self.frameworks) - len(self.missing)
        return f"{installed} of {len(self.frameworks)} frameworks installed"

    def parts(self) -> list[Part]:
        """One row per framework."""
        table = Table.of(
            self.frameworks,
            (Column("framework"), lambda one: one.name),
            (Column("environment"), lambda one: one.environment or "-"),
            (Column("state"), lambda one: one.state),
            (Column("size"), lambda one: _gigabytes(one.size_bytes)),
            note="Install an environment with 'paceline frameworks install NAME'.",
        )
        return [table]


@dataclass(frozen=True, repr=False)
class VerifiedFrameworks(PublicResult):
    """Results of the contract tests, by framework."""

    schema: ClassVar[str] = "contract/1"
    results: "tuple[tuple[str, tuple[Result, ...]], ...]"

    @property
    def passed(self) -> bool:
        """Whether no check failed."""
        return all(one.passed is not False for _, found in self.results for one in found)

    def summary(self) -> str:
        """The frameworks, and whether every check passed."""
        verdict = "passed" if self.passed else "FAILED"
        return f"{', '.join(name for name, _ in self.results)}: {verdict}"

    def parts(self) -> list[Part]:
        """One line per check."""
        return [describe_check(name, one) for name, found in self.results for one in found]

    def to_dict(self) -> dict[str, Any]:
        """The checks of each framework."""
        found = [{"name": name, "checks": list(map(asdict, own))} for name, own in self.results]
        return {"frameworks": found}


def installed_frameworks() -> InstalledFrameworks:
    """Every framework that Paceline runs, with the state of its environment."""
    return InstalledFrameworks(tuple(framework_states()))


def install_frameworks(
    names: str | Sequence[str],
    *,
    python: str | None = None,
    on_stage: Callable[[str], None] = _ignore,
    on_line: Callable[[str], None] = _ignore,
) -> InstalledFrameworks:
    """Create the virtual environment of each framework from its pinned requirements.

    ``python`` is the interpreter of new environments [the one that runs Paceline]. The same call
    continues an interrupted installation.
    """
    from paceline.frameworks.environments.environment_state import environment_state
    from paceline.frameworks.environments.install import install
    from paceline.frameworks.framework_registry import environments_of

    given = _names(names)
    for spec in environments_of(given):
        install(spec, on_stage, python)
        made = environment_state(spec)
        on_line(f"{spec.name}: {made.state}, {_gigabytes(made.size_bytes)} in {made.directory}")
    states = framework_states()
    return InstalledFrameworks(tuple(one for one in states if one.name in given))


def verify_frameworks(
    names: str | Sequence[str],
    *,
    all_networks: bool = False,
    logs: Path | str | None = None,
    on_stage: Callable[[str], None] = _ignore,
    on_line: Callable[[str], None] = _ignore,
) -> VerifiedFrameworks:
    """Run the contract tests of each framework: equal training, correct behaviour.

    With ``all_networks`` every network that the framework supports is built too. ``logs`` is a
    directory for the output of the workers.
    """
    from paceline.testing.adapter_suite import CHECKS, QUICK, verify

    checks = CHECKS if all_networks else QUICK
    results = []
    for name in _names(names):
        waiting, found = [*checks, "done"], list["Result"]()
        on_stage(f"{name}: {waiting[0]}")
        for result in verify(name, checks, None if logs is None else Path(logs)):
            found.append(result)
            on_stage(f"{name}: {waiting[len(found)]}")
            on_line(describe_check(name, result))
        results.append((name, tuple(found)))
    return VerifiedFrameworks(tuple(results))


def remove_frameworks(names: str | Sequence[str]) -> dict[str, bool]:
    """Delete the environment of each framework; whether it was installed, by environment."""
    from paceline.frameworks.environments.install import remove
    from paceline.frameworks.framework_registry import environments_of

    return {spec.name: remove(spec) for spec in environments_of(_names(names))}


def use_framework(name: str, *, interpreter: str | None = None, image: str | None = None) -> None:
    """Run a framework in your own interpreter or container image; without both, in Paceline's."""
    from paceline.frameworks.command import run_in
    from paceline.frameworks.environments.choice import EnvironmentChoice
    from paceline.frameworks.framework_registry import framework

    if interpreter and image:
        raise InputError("interpreter and image were both given", "give one of them")
    choice = EnvironmentChoice(interpreter, image) if interpreter or image else None
    run_in(framework(name), choice)


def describe_check(name: str, result: "Result") -> str:
    verdict = {True: "passed", False: "FAILED", None: "not applicable"}[result.passed]
    return f"{name}: {result.check}: {verdict} ({result.message})"


def _names(names: str | Sequence[str]) -> list[str]:
    return names.split(",") if isinstance(names, str) else list(names)


def _gigabytes(size_bytes: float | None) -> str:
    return "-" if size_bytes is None else f"{size_bytes / 1e9:.2f} GB"


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
