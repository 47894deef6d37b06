"""Plugins: extensions that installed packages register as entry points."""

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from paceline.errors import PacelineError

T = TypeVar("T")


class PluginKind(StrEnum):
    """Kinds of plugins; the value is the entry-point group."""

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
        """Import the object of the entry point; any exception becomes a `PluginError`."""
        from importlib.metadata import EntryPoint

        try:
            return EntryPoint(self.name, self.target, self.kind.value).load()
        # SystemExit too: a module that calls sys.exit() must not end Paceline.
        except (Exception, SystemExit) as problem:
            raise PluginError(self, f"{type(problem).__name__}: {problem}") from problem

    def path(self, value: object) -> Path:
        """The file of an entry point that is a path or a function returning one."""
        try:
            given = value() if callable(value) else value
            path = Path(given) if isinstance(given, str | os.PathLike) else None
        except Exception as problem:
            raise PluginError(self, f"{type(problem).__name__}: {problem}") from problem
        if path is None or not path.is_file():
            raise PluginError(self, f"expected the path of a file, got {given!r}")
        return path


class PluginError(PacelineError):
    """A plugin that cannot be used; ``why`` is the reason."""

    def __init__(self, plugin: Plugin, why: str) -> None:
        self.plugin, self.why = plugin, why
        super().__init__(
            f"the {plugin.kind.name.lower()} '{plugin.name}' of package {plugin.package} "
            f"cannot be used: {why}",
            f"fix or uninstall {plugin.package} ({plugin.target}); "
            "run 'paceline doctor' for a list of plugins",
        )


def installed_plugins() -> list[Plugin]:
    """All registered plugins, including those that cannot be loaded."""
    return [plugin for kind in PluginKind for plugin in _registered(kind)]


@cache
def plugins(kind: PluginKind) -> tuple[tuple[Plugin, Any], ...]:
    """The plugins of a ``kind``, each with its loaded object."""
    found: dict[str, tuple[Plugin, Any]] = {}
    for plugin in _registered(kind):
        if plugin.name in found:
            raise PluginError(plugin, "another package registers the same name")
        found[plugin.name] = (plugin, plugin.load())
    return tuple(found.values())


def with_plugins(
    kind: PluginKind,
    built_in: Mapping[str, T],
    expected: type[Any],
    spelled: Callable[[str], str] = str,
) -> dict[str, T]:
    """``built_in`` objects and those of plugins, by name.

    Raises `PluginError` for a duplicate name (compared after ``spelled``), an object that is not
    of the ``expected`` type, and an object whose name differs from that of its entry point.
    """
    together = dict(built_in)
    taken = {spelled(name) for name in built_in}
    for plugin, value in plugins(kind):
        if spelled(plugin.name) in taken:
            raise PluginError(plugin, "the name is already in use")
        if not isinstance(value, expected):
            raise PluginError(plugin, f"expected an object of type {expected.__name__}")
        if hasattr(expected, "name") and value.name != plugin.name:
            raise PluginError(plugin, f"its own name is '{value.name}'")
        taken.add(spelled(plugin.name))
        together[plugin.name] = value
    return together


def why_unusable(plugin: Plugin, registry: Callable[[], object]) -> str:
    """Why a plugin cannot be loaded or added to the ``registry`` of its kind; empty if it can."""
    try:
        plugin.load()
        registry()
    except PluginError as error:
        return error.why if error.plugin == plugin else ""
    except PacelineError as error:
        return error.message
    return ""


def _registered(kind: PluginKind) -> list[Plugin]:
    if not any(map(_may_register, sys.path)):
        return []
    from importlib.metadata import entry_points  # 15 ms to import, 10 ms to search

    return [
        Plugin(kind, point.name, point.value, point.dist.name if point.dist else "unknown")
        for point in entry_points(group=kind.value)
    ]


def _may_register(folder: str) -> bool:
    """Whether a package in a ``folder`` of the import path may register a plugin."""
    path = Path(folder)
    try:
        changed_ns = path.stat().st_mtime_ns
    except OSError:
        return False
    # Only importlib.metadata reads archives.
    return not path.is_dir() or _names_a_group(path, changed_ns)


@cache
def _names_a_group(folder: Path, changed_ns: int) -> bool:
    """Whether entry points of a package in ``folder``, last changed then, name one of our groups.

    Eggs (``NAME.egg``) may be archives, so they count as if they did.
    """
    with suppress(OSError):
        for entry in folder.iterdir():
            if entry.suffix == ".egg":
                return True
            if entry.name.lower().endswith((".dist-info", "egg-info")):
                with suppress(OSError):
                    if b"[paceline." in (entry / "entry_points.txt").read_bytes():
                        return True
    return False
