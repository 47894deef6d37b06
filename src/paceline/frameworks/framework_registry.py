"""All frameworks: the folders of this package and plug-ins."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from paceline.errors import InputError, PacelineError
from paceline.frameworks.adapter import FrameworkAdapter
from paceline.frameworks.environments.spec import EnvironmentSpec
from paceline.frameworks.manifest import FILE_NAME, STATUSES, FrameworkManifest, read_manifest
from paceline.frameworks.program_recipe import ProgramRecipe
from paceline.located_toml import TomlTable
from paceline.naming import look_up
from paceline.plugins import Plugin, PluginError, PluginKind, plugins, with_plugins

HERE = Path(__file__).parent
T = TypeVar("T")


@cache
def manifests() -> dict[str, FrameworkManifest]:
    """Return every manifest by family: maintained, then legacy, then external."""
    files = [*HERE.glob(f"**/{FILE_NAME}"), *HERE.glob("external/*.toml")]
    built_in = sorted(map(read_manifest, files), key=_by_status_and_name)
    together = with_plugins(
        PluginKind.FRAMEWORK, {manifest.name: manifest for manifest in built_in}, expected=object
    )
    return together | {
        plugin.name: _manifest_of(plugin, value) for plugin, value in plugins(PluginKind.FRAMEWORK)
    }


@cache
def frameworks() -> dict[str, FrameworkAdapter]:
    """Return every framework that Paceline runs, by name."""
    return _of_all("framework", lambda manifest: manifest.adapters)


@cache
def environments() -> dict[str, EnvironmentSpec]:
    """Return every installable environment, by name."""
    return _of_all("environment", lambda manifest: manifest.environments)


@cache
def profiles() -> dict[str, TomlTable]:
    """Return every predictor profile, unparsed, by name."""
    return _of_all("profile", lambda manifest: manifest.profiles)


@cache
def recipes() -> dict[str, ProgramRecipe]:
    """Return every recipe of a program that Paceline does not install, in alphabetical order."""
    return dict(sorted(_of_all("recipe", lambda manifest: manifest.recipes).items()))


def framework(name: str) -> FrameworkAdapter:
    hint = f"choose one of {', '.join(frameworks())}"
    for own, profile in profiles().items():
        if own in frameworks() and name.lower() in profile.values.get("aliases", ()):
            hint = f"use {own}"
    return look_up("framework", name, frameworks(), hint)


def environment(name: str) -> EnvironmentSpec:
    return look_up(
        "environment", name, environments(), f"choose one of {', '.join(environments())}"
    )


def environments_of(names: Sequence[str]) -> list[EnvironmentSpec]:
    """Return the environments of names of environments or frameworks, each once, in order."""
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
    return look_up("recipe", name, recipes(), "list all with 'paceline catalog recipes'")


def _by_status_and_name(manifest: FrameworkManifest) -> tuple[int, str]:
    return STATUSES.index(manifest.status), manifest.name


def _manifest_of(plugin: Plugin, value: object) -> FrameworkManifest:
    """Return the manifest of an entry point: the object itself, a folder or a package."""
    if isinstance(value, FrameworkManifest):
        return value
    folder = (
        Path(value.__file__).parent if isinstance(value, ModuleType) and value.__file__ else value
    )
    if not isinstance(folder, str | Path):
        raise PluginError(plugin, f"{value!r} is neither a package nor a folder with a {FILE_NAME}")
    try:
        return read_manifest(Path(folder))
    except PacelineError as error:
        raise PluginError(plugin, error.message) from error


def _of_all(kind: str, part: Callable[[FrameworkManifest], Mapping[str, T]]) -> dict[str, T]:
    """Return one part of all manifests; raise if two define the same name."""
    found: dict[str, T] = {}
    owners: dict[str, FrameworkManifest] = {}
    for manifest in manifests().values():
        for name, value in part(manifest).items():
            if name in owners:
                raise InputError(
                    f"duplicate {kind} '{name}' in {owners[name].folder} and {manifest.folder}",
                    "rename one of them, or uninstall the package of one",
                )
            found[name], owners[name] = value, manifest
    return found
