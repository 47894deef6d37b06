"""What installed packages add to Paceline: one mechanism, entry points, for every kind."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
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

    def load(self) -> Any:
        """What the entry point names; whatever that raises is told, not thrown."""
        try:
            return EntryPoint(self.name, self.target, self.kind.value).load()
        except (Exception, SystemExit) as problem:
            raise PluginError(self, f"{type(problem).__name__}: {problem}") from problem

    def path(self, value: object) -> Path:
        """The file that the entry point gives: as a path, or by a function that returns one."""
        try:
            given = value() if callable(value) else value
            path = Path(given) if isinstance(given, str | os.PathLike) else None
        except Exception as problem:
            raise PluginError(self, f"{type(problem).__name__}: {problem}") from problem
        if path is None or not path.is_file():
            raise PluginError(self, f"it gives no file, but {given!r}")
        return path


class PluginError(PacelineError):
    """A plugin that cannot be used; ``why`` is the reason in a few words."""

    def __init__(self, plugin: Plugin, why: str) -> None:
        self.plugin, self.why = plugin, why
        super().__init__(
            f"the {plugin.kind.name.lower()} '{plugin.name}' of the package {plugin.package} "
            f"cannot be used: {why}",
            f"mend or uninstall {plugin.package} ({plugin.target}); "
            "'paceline doctor' lists all plugins",
        )


def installed_plugins() -> list[Plugin]:
    """Every plugin of every kind, whether it can be loaded or not."""
    return [plugin for kind in PluginKind for plugin in _registered(kind)]


@cache
def plugins(kind: PluginKind) -> tuple[tuple[Plugin, Any], ...]:
    """What installed packages register under ``kind``, with what each entry point names."""
    found: dict[str, tuple[Plugin, Any]] = {}
    for plugin in _registered(kind):
        if plugin.name in found:
            raise PluginError(plugin, "another package registers that name too")
        found[plugin.name] = (plugin, plugin.load())
    return tuple(found.values())


def with_plugins(
    kind: PluginKind,
    built_in: Mapping[str, T],
    expected: type[Any],
    spelled: Callable[[str], str] = str,
) -> dict[str, T]:
    """``built_in`` and what packages add to it, by name.

    Refused are a name that is taken (two names are one if ``spelled`` alike), a value that is
    not of the ``expected`` type, and one whose own name is not that of its entry point.
    """
    together = dict(built_in)
    taken = {spelled(name) for name in built_in}
    for plugin, value in plugins(kind):
        if spelled(plugin.name) in taken:
            raise PluginError(plugin, "that name is taken")
        if not isinstance(value, expected):
            raise PluginError(plugin, f"it is no {expected.__name__}")
        if hasattr(expected, "name") and value.name != plugin.name:
            raise PluginError(plugin, f"it calls itself '{value.name}'")
        taken.add(spelled(plugin.name))
        together[plugin.name] = value
    return together


def why_unusable(plugin: Plugin, registry: Callable[[], object]) -> str:
    """Why a plugin cannot be used, alone or in the ``registry`` of its kind; empty if it can."""
    try:
        plugin.load()
        registry()
    except PluginError as error:
        return error.why if error.plugin == plugin else ""
    except PacelineError as error:
        return error.message
    return ""


def _registered(kind: PluginKind) -> list[Plugin]:
    return [
        Plugin(kind, point.name, point.value, point.dist.name if point.dist else "unknown")
        for point in entry_points(group=kind.value)
    ]
