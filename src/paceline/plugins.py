"""What installed packages add to Paceline: one mechanism, entry points, for every kind."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

from paceline.errors import PacelineError

T = TypeVar("T")


class PluginKind(StrEnum):
    """What a package may add; the value is the entry-point group it registers under."""

    FRAMEWORK = "paceline.frameworks"
    LAUNCHER = "paceline.launchers"
    READER = "paceline.readers"
    HARDWARE = "paceline.hardware"
    NETWORK = "paceline.networks"
    COLLECTIVE = "paceline.collectives"
    FIGURE = "paceline.figures"


@dataclass(frozen=True)
class Plugin:
    """One entry point of one installed package."""

    kind: PluginKind
    name: str
    target: str
    package: str


def installed_plugins() -> list[Plugin]:
    """Every plugin of every kind, whether it can be loaded or not."""
    return [
        Plugin(kind, point.name, point.value, _package(point))
        for kind in PluginKind
        for point in entry_points(group=kind.value)
    ]


@cache
def plugins(kind: PluginKind) -> Mapping[str, Any]:
    """What installed packages register under ``kind``, loaded, by name."""
    found: dict[str, Any] = {}
    for point in entry_points(group=kind.value):
        if point.name in found:
            raise _unusable(point, kind, "another package registers that name too")
        try:
            found[point.name] = point.load()
        except Exception as problem:  # a stranger's code: whatever it raises is told, not thrown
            raise _unusable(point, kind, f"{type(problem).__name__}: {problem}") from problem
    return found


def with_plugins(kind: PluginKind, built_in: Mapping[str, T], expected: type[T]) -> dict[str, T]:
    """``built_in`` and what packages add to it; a name that is taken or a wrong type is refused."""
    together = dict(built_in)
    for name, value in plugins(kind).items():
        point = _point(kind, name)
        if name in built_in:
            raise _unusable(point, kind, "Paceline has one of that name itself")
        if not isinstance(value, expected):
            raise _unusable(point, kind, f"it is no {expected.__name__}")
        together[name] = value
    return together


def _point(kind: PluginKind, name: str) -> EntryPoint:
    return next(point for point in entry_points(group=kind.value) if point.name == name)


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else "unknown"


def _unusable(point: EntryPoint, kind: PluginKind, why: str) -> PacelineError:
    what = kind.name.lower()
    return PacelineError(
        f"the {what} '{point.name}' of the package {_package(point)} cannot be used: {why}",
        f"mend or uninstall {_package(point)} ({point.value}); 'paceline doctor' lists all plugins",
    )
