"""All frameworks: folders of this package and of plug-ins, each with a manifest.

    status = "maintained"

    [environment.mine]
    module = "mine"
    disk = "1GB"

    [framework.mine]
    worker = "mine_worker.py"
    environment = "mine"
    operations = "common"

    [profile.mine]
    inherits = "torch-ddp"
    title = "Mine"

docs/guides/frameworks.md lists every key.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, TypeVar

from paceline.errors import InputError, PacelineError
from paceline.file_errors import Problems
from paceline.file_keys import Key
from paceline.frameworks.adapter import FrameworkAdapter
from paceline.frameworks.environments.spec import EnvironmentSpec, PipStep
from paceline.frameworks.program_recipe import ProgramRecipe
from paceline.located_toml import PACKAGE, TomlTable, read_toml, shipped_toml
from paceline.naming import look_up
from paceline.plugins import Plugin, PluginError, PluginKind, plugins, with_plugins
from paceline.typed_toml import read_table, tables_in

FILE_NAME = "manifest.toml"
STATUSES = ("maintained", "legacy", "external")
"""Maintained by its project; run, but no longer developed; predicted and imported, not run."""


@dataclass(frozen=True)
class FrameworkManifest:
    """The contents of one folder, by name; ``name`` is that of the folder and of the family.

    ``profiles`` stay tables for the predictor to read: one may inherit from a profile
    of another folder.
    """

    name: str
    folder: Path
    status: str
    adapters: Mapping[str, FrameworkAdapter]
    environments: Mapping[str, EnvironmentSpec]
    profiles: Mapping[str, TomlTable]
    recipes: Mapping[str, ProgramRecipe]


@dataclass(frozen=True)
class _Tables:
    """The top level of a manifest."""

    status: Annotated[str, Key(choices=STATUSES)]
    framework: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    profile: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    recipe: Mapping[str, Any] = field(default_factory=dict)


def read_manifest(path: Path) -> FrameworkManifest:
    """Read the manifest of a folder, or a manifest file with another name."""
    file = path / FILE_NAME if path.is_dir() else path
    if file.is_relative_to(PACKAGE):
        root = shipped_toml(*file.relative_to(PACKAGE).parts)
    else:
        root = read_toml(file)
    problems = Problems(root)
    top = read_table(root, _Tables, problems)
    environments = {}
    for table in tables_in(root, "environment", problems):
        if (environment := _environment(table, file.parent, problems)) is not None:
            environments[table.name] = environment
    adapters = {}
    for table in tables_in(root, "framework", problems):
        if (adapter := _adapter(table, file.parent, environments, problems)) is not None:
            adapters[table.name] = adapter
    recipes = {}
    for table in tables_in(root, "recipe", problems):
        if (recipe := read_table(table, ProgramRecipe, problems, name=table.name)) is not None:
            recipes[table.name] = recipe
    problems.check()
    assert top is not None
    return FrameworkManifest(
        name=file.parent.name if file.name == FILE_NAME else file.stem,
        folder=file.parent,
        status=top.status,
        adapters=adapters,
        environments=environments,
        profiles=root.table("profile").tables(),
        recipes=recipes,
    )


def _adapter(
    table: TomlTable,
    folder: Path,
    environments: Mapping[str, EnvironmentSpec],
    problems: Problems,
) -> FrameworkAdapter | None:
    own: dict[str, Any] = {"name": table.name}
    environment = str(table.values.get("environment", ""))
    if environment and environment not in environments:
        where = (*table.path, "environment")
        problems.add(where, f"no [environment.{environment}]", "add it to this file")
        own["module"] = ""
    elif environment and "module" not in table.values:
        own["module"] = environments[environment].module
    if "profile" not in table.values:
        own["profile"] = table.name
    found = read_table(table, FrameworkAdapter, problems, **own)
    if found is None:
        return None
    return replace(found, worker=_existing(folder, found.worker, (*table.path, "worker"), problems))


def _environment(table: TomlTable, folder: Path, problems: Problems) -> EnvironmentSpec | None:
    own: dict[str, Any] = {"name": table.name}
    if "steps" not in table.values:
        own["steps"] = (PipStep(Path("requirements.txt")),)
    found = read_table(table, EnvironmentSpec, problems, **own)
    if found is None:
        return None
    steps = []
    for index, step in enumerate(found.steps):
        where = (*table.path, "steps", index, "requirements")
        file = _existing(folder, step.requirements, where, problems)
        steps.append(replace(step, requirements=file))
    return replace(found, steps=tuple(steps))


def _existing(folder: Path, file: Path, where: tuple[str | int, ...], problems: Problems) -> Path:
    path = folder / file
    if not path.is_file():
        hint = "name a file in the folder of the manifest"
        problems.add(where, f"file {path} does not exist", hint)
    return path


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
