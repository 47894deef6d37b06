"""Reads the manifest of a framework's folder; errors name the file and line.

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

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from paceline.file_errors import Problems
from paceline.file_keys import Key
from paceline.frameworks.adapter import FrameworkAdapter
from paceline.frameworks.environments.spec import EnvironmentSpec, PipStep
from paceline.frameworks.program_recipe import ProgramRecipe
from paceline.located_toml import PACKAGE, TomlTable, read_toml, shipped_toml
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
