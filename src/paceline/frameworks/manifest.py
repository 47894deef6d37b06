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
from dataclasses import dataclass, replace
from pathlib import Path

from paceline import units
from paceline.frameworks.adapter import FrameworkAdapter
from paceline.frameworks.environments.spec import (
    NEWEST_PYTHON,
    OLDEST_PYTHON,
    EnvironmentSpec,
    PipStep,
)
from paceline.frameworks.operations import COMMON_OPERATIONS
from paceline.frameworks.recipes import ProgramRecipe, read_recipe
from paceline.located_toml import TomlTable, read_toml

FILE_NAME = "manifest.toml"
STATUSES = ("maintained", "legacy", "external")
"""Maintained by its project; run, but no longer developed; predicted and imported, not run."""

_FRAMEWORK_KEYS = (
    *("worker", "module", "environment", "uses", "operations", "instruments", "variables"),
    *("synchronous", "launcher", "profile", "evaluates"),
)
_ENVIRONMENT_KEYS = (
    *("module", "disk", "steps", "tools", "oldest_python", "newest_python", "compiler_standard"),
)


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


def read_manifest(path: Path) -> FrameworkManifest:
    """Read the manifest of a folder, or a manifest file with another name."""
    file = path / FILE_NAME if path.is_dir() else path
    folder = file.parent
    root = read_toml(file)
    root.check_keys(("status", "framework", "environment", "profile", "recipe"), needed=("status",))
    environments = {
        name: _environment(table, folder)
        for name, table in root.table("environment").tables().items()
    }
    return FrameworkManifest(
        name=folder.name if file.name == FILE_NAME else file.stem,
        folder=folder,
        status=root.text_of("status", allowed=STATUSES),
        adapters={
            name: _adapter(table, folder, environments)
            for name, table in root.table("framework").tables().items()
        },
        environments=environments,
        profiles=root.table("profile").tables(),
        recipes={name: read_recipe(table) for name, table in root.table("recipe").tables().items()},
    )


def _adapter(
    table: TomlTable, folder: Path, environments: Mapping[str, EnvironmentSpec]
) -> FrameworkAdapter:
    environment = table.text_of("environment")
    needed = ("worker", "operations") if environment else ("worker", "operations", "module")
    table.check_keys(_FRAMEWORK_KEYS, needed)
    if environment and environment not in environments:
        table.fail("environment", f"no [environment.{environment}]", "add it to this file")
    return FrameworkAdapter(
        name=table.name,
        worker=_file(table, "worker", folder),
        module=table.text_of("module") or environments[environment].module,
        environment=environment,
        uses=tuple(table.names("uses")),
        operations=_operations(table),
        instruments=tuple(table.names("instruments")) or FrameworkAdapter.instruments,
        variables=_texts(table.table("variables")),
        synchronous="synchronous" not in table.values or table.flag("synchronous"),
        launcher=table.text_of("launcher", allowed=("", "mpiexec")),
        evaluates="evaluates" in table.values and table.flag("evaluates"),
        profile=table.text_of("profile", table.name),
    )


def _operations(table: TomlTable) -> frozenset[str] | None:
    value = table.values["operations"]
    if isinstance(value, list):
        return frozenset(table.names("operations"))
    if value not in ("all", "common"):
        table.fail(
            "operations",
            f"invalid operations {value!r}",
            'write "all", "common" or a list of names',
        )
    return None if value == "all" else COMMON_OPERATIONS


def _environment(table: TomlTable, folder: Path) -> EnvironmentSpec:
    table.check_keys(_ENVIRONMENT_KEYS, needed=("module", "disk"))
    usual = replace(table, values={"requirements": "requirements.txt"})
    return EnvironmentSpec(
        name=table.name,
        module=table.text_of("module"),
        steps=tuple(_step(step, folder) for step in table.array("steps") or [usual]),
        disk_bytes=table.parsed("disk", units.parse_bytes) or 0.0,
        tools=tuple(table.names("tools")),
        oldest_python=_version(table, "oldest_python", OLDEST_PYTHON),
        newest_python=_version(table, "newest_python", NEWEST_PYTHON),
        compiler_standard=table.text_of("compiler_standard"),
    )


def _step(table: TomlTable, folder: Path) -> PipStep:
    table.check_keys(("requirements", "options", "variables"), needed=("requirements",))
    return PipStep(
        _file(table, "requirements", folder),
        tuple(table.names("options")),
        _texts(table.table("variables")),
    )


def _file(table: TomlTable, key: str, folder: Path) -> Path:
    path = folder / table.text_of(key)
    if not path.is_file():
        table.fail(key, f"file {path} does not exist", "name a file in the folder of the manifest")
    return path


def _texts(table: TomlTable) -> dict[str, str]:
    return {key: table.text_of(key) for key in table.values}


def _version(table: TomlTable, key: str, default: tuple[int, int]) -> tuple[int, int]:
    if key not in table.values:
        return default
    major, _, minor = table.text_of(key).partition(".")
    if not (major.isdecimal() and minor.isdecimal()):
        table.fail(key, f"invalid version '{table.text_of(key)}'", 'write for example "3.11"')
    return int(major), int(minor)
