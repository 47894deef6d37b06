"""Every framework: the folders beside this file, and those that installed packages add."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from paceline.errors import InputError, PacelineError
from paceline.frameworks.adapter import FrameworkAdapter
from paceline.frameworks.environments.spec import EnvironmentSpec
from paceline.frameworks.manifest import FILE_NAME, STATUSES, FrameworkManifest, read_manifest
from paceline.frameworks.recipes import ProgramRecipe
from paceline.located_toml import TomlTable
from paceline.naming import look_up
from paceline.plugins import Plugin, PluginError, PluginKind, plugins, with_plugins

HERE = Path(__file__).parent
T = TypeVar("T")


@cache
def manifests() -> dict[str, FrameworkManifest]:
    """Every manifest by the name of its family: maintained ones, then legacy, then external."""
    files = [*HERE.glob(f"**/{FILE_NAME}"), *HERE.glob("external/*.toml")]
    built_in = sorted(map(read_manifest, files), key=_by_status_and_name)
    together = with_plugins(
        PluginKind.FRAMEWORK, {one.name: one for one in built_in}, expected=object
    )
    return together | {
        plugin.name: _manifest_of(plugin, value) for plugin, value in plugins(PluginKind.FRAMEWORK)
    }


@cache
def frameworks() -> dict[str, FrameworkAdapter]:
    """Every framework that can be run, by name."""
    return _of_all("framework", lambda manifest: manifest.adapters)


@cache
def environments() -> dict[str, EnvironmentSpec]:
    """Every environment that can be installed, by name."""
    return _of_all("environment", lambda manifest: manifest.environments)


@cache
def profiles() -> dict[str, TomlTable]:
    """Every predictor profile, unread, by name."""
    return _of_all("profile", lambda manifest: manifest.profiles)


@cache
def recipes() -> dict[str, ProgramRecipe]:
    """Every recipe of a program that Paceline does not install, in alphabetical order."""
    return dict(sorted(_of_all("recipe", lambda manifest: manifest.recipes).items()))


def framework(name: str) -> FrameworkAdapter:
    """The framework of that name, or an error that suggests the nearest."""
    hint = f"measured here: {', '.join(frameworks())}"
    for own, profile in profiles().items():
        if own in frameworks() and name.lower() in profile.names("aliases"):
            hint = f"here it is called {own}"
    return look_up("framework", name, frameworks(), hint)


def environment(name: str) -> EnvironmentSpec:
    """The environment of that name, or an error that suggests the nearest."""
    return look_up("environment", name, environments(), f"there are: {', '.join(environments())}")


def environments_of(names: Sequence[str]) -> list[EnvironmentSpec]:
    """Environments by their own names or those of frameworks, each once, in the order named."""
    found = {}
    for name in names:
        own = name if name in environments() else framework(name).environment
        if not own:
            raise InputError(
                f"{name} has no environment to install", "it runs in Paceline's own Python"
            )
        found[own] = environment(own)
    return list(found.values())


def recipe(name: str) -> ProgramRecipe:
    """The recipe called ``name``; an unknown name suggests the nearest ones."""
    return look_up("recipe", name, recipes(), "'paceline recipes' lists all")


def _by_status_and_name(manifest: FrameworkManifest) -> tuple[int, str]:
    return STATUSES.index(manifest.status), manifest.name


def _manifest_of(plugin: Plugin, value: object) -> FrameworkManifest:
    """What an entry point gave: a manifest, or the folder or the package that has one."""
    if isinstance(value, FrameworkManifest):
        return value
    folder = (
        Path(value.__file__).parent if isinstance(value, ModuleType) and value.__file__ else value
    )
    if not isinstance(folder, str | Path):
        raise PluginError(plugin, f"{value!r} is no package or folder with a {FILE_NAME}")
    try:
        return read_manifest(Path(folder))
    except PacelineError as error:
        raise PluginError(plugin, error.message) from error


def _of_all(kind: str, part: Callable[[FrameworkManifest], Mapping[str, T]]) -> dict[str, T]:
    """One part of every manifest; a name that two of them bring is refused."""
    found: dict[str, T] = {}
    owners: dict[str, FrameworkManifest] = {}
    for manifest in manifests().values():
        for name, value in part(manifest).items():
            if name in owners:
                raise InputError(
                    f"the {kind} '{name}' is in {owners[name].folder} and in {manifest.folder}",
                    "rename one of them, or uninstall the package that brings it",
                )
            found[name], owners[name] = value, manifest
    return found
