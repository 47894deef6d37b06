"""Public functions package_study and verify_package: a study as one directory for an artifact.

Everything but the page and the figures can be computed again from ``store.db`` of the package,
byte for byte; `verify_package` does so.
"""

import filecmp
import hashlib
import json
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import paceline
from paceline.errors import InputError, MissingExtraError
from paceline.json_checks import parsed_json
from paceline.json_text import json_text
from paceline.naming import file_name
from paceline.render.files import check_writable, write_text
from paceline.render.markup import MARKUPS
from paceline.render.result import Part, PublicResult
from paceline.render.table import Column, Table
from paceline.store import Store
from paceline.store.api import export
from paceline.store.housekeeping import copy_study
from paceline.store.tidy_tables import kind_of
from paceline.units import plural
from paceline.user_files import opened, read_text

if TYPE_CHECKING:
    from paceline.study import Study

STORE, SUMS, ABOUT = "store.db", "SHA256SUMS", "package.json"
TABLES = ("launches", "steps")
LARGEST_TEXT = 100_000_000
SUFFIXES = {"markdown": ".md", "latex": ".tex"}
_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number"}

README = """# Data of the study {study}

Measured with Paceline {version}; {launches} of {model}.

| file | contents |
|---|---|
| `report.html` | the report, self-contained |
| `results.json` | every result with its interval |
| `tables/` | the tables as Markdown and LaTeX (booktabs) |
| `figures/` | the figures, if the package `paceline[figures]` was installed |
| `launches.csv`, `steps.csv` | one row per launch, and per step of each rank |
| `datapackage.json` | types of their columns (Frictionless Data Package) |
| `environment.json` | hardware, system and versions of each launch |
| `store.db` | the launches, as Paceline recorded them |

    pip install paceline=={version}
    paceline study verify .

computes tables, results and CSV files again from `store.db` and compares them with this directory.
"""


@dataclass(frozen=True, repr=False)
class StudyPackage(PublicResult):
    """A written package; ``without_figures`` is the reason if it has no figures."""

    schema: ClassVar[str] = "package/1"
    directory: Path
    files: tuple[str, ...]
    without_figures: str = ""

    def parts(self) -> list[Part]:
        """The directory and the number of files."""
        return [f"Package: {plural(len(self.files), 'file')} in {self.directory}"]

    def warnings(self) -> list[str]:
        """The reason if figures are missing."""
        return [f"warning: no figures: {self.without_figures}"] if self.without_figures else []

    def to_dict(self) -> dict[str, Any]:
        """Directory and files."""
        return {"directory": str(self.directory), "files": list(self.files)}


@dataclass(frozen=True, repr=False)
class PackageCheck(PublicResult):
    """Outcome of `verify_package`: the state of each file, "" if it is as it should be."""

    schema: ClassVar[str] = "package-check/1"
    directory: Path
    files: tuple[tuple[str, bool, str], ...]
    version: str

    @property
    def problems(self) -> tuple[tuple[str, str], ...]:
        """Files that differ, with the reason."""
        return tuple((name, problem) for name, _, problem in self.files if problem)

    def summary(self) -> str:
        """Whether every number was reproduced."""
        computed = sum(recomputed for _, recomputed, _ in self.files)
        if self.problems:
            return f"{len(self.problems)} of {plural(len(self.files), 'file')} differ"
        return (
            f"{plural(len(self.files), 'file')} intact, {computed} recomputed with equal contents"
        )

    def parts(self) -> list[Part]:
        """One row per file that differs, and the summary."""
        if not self.problems:
            return [self.summary()]
        return [Table((Column("file"), Column("problem")), self.problems), self.summary()]

    def warnings(self) -> list[str]:
        """A difference of versions."""
        if self.version == paceline.__version__:
            return []
        return [
            f"warning: the package was written by Paceline {self.version}, this is "
            f"{paceline.__version__}: results may differ in rounding"
        ]

    def to_dict(self) -> dict[str, Any]:
        """State of each file."""
        rows = [
            {"file": name, "recomputed": recomputed, "problem": problem}
            for name, recomputed, problem in self.files
        ]
        return {"directory": str(self.directory), "verified": not self.problems, "files": rows}


def package_study(
    study: "Study | str", *, out: Path | str | None = None, store: Path | str | None = None
) -> StudyPackage:
    """Write a study as a self-contained directory ``out`` [STUDY-package].

    It contains the launches, tables, results, figures and report, with checksums.
    """
    from paceline.study import Study

    found = study if isinstance(study, Study) else Study.load(study, store)
    directory = Path(out) if out is not None else Path(f"{file_name(found.name)}-package")
    if directory.exists():
        raise InputError(f"'{directory}' already exists", "give a new directory with --out")
    if not found.has_results:
        raise InputError(f"study {found.name} has no results", "see why with 'paceline study show'")
    check_writable(directory)
    directory.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=".package-", dir=directory.parent))
    try:
        with found.open() as source, Store(partial / STORE) as target:
            copy_study(source, target, found.name)
        own = Study.load(found.name, partial / STORE)
        _write_computed(own, partial)
        own.report(partial / "report.html")
        reason = _write_figures(own, partial / "figures")
        launches = own.launches
        _close_store(partial)
        write_text(
            partial / "README.md",
            README.format(
                study=found.name,
                version=paceline.__version__,
                launches=plural(len(launches), "launch"),
                model=", ".join(sorted({one.model for one in launches})),
            ),
        )
        about = {"study": found.name, "paceline": paceline.__version__}
        write_text(partial / ABOUT, json_text("package", 1, about))
        files = tuple(_files(partial))
        sums = "".join(f"{_digest(partial / name)}  {name}\n" for name in files)
        write_text(partial / SUMS, sums)
        partial.chmod(0o755)
        partial.rename(directory)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return StudyPackage(directory, (*files, SUMS), reason)


def verify_package(directory: Path | str) -> PackageCheck:
    """Compare every file of a package with its checksum, and compute its results again."""
    from paceline.study import Study

    root = Path(directory)
    about, sums = _about(root), _sums(root)
    problems = {name: _problem(root / name, digest) for name, digest in sums.items()}
    problems |= {name: "not in SHA256SUMS" for name in _files(root) if name not in sums}
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / STORE
        with _own_file(root / STORE) as store, copy.open("wb") as file:
            shutil.copyfileobj(store, file)
        again = Path(scratch) / "computed"
        again.mkdir()
        _write_computed(Study.load(about["study"], copy), again)
        computed = list(_files(again))
        for name in computed:
            if not (root / name).is_file():
                problems[name] = "missing"
            elif not filecmp.cmp(root / name, again / name, shallow=False):
                problems[name] = "differs from the result computed from store.db"
    rows = tuple((name, name in computed, problems[name]) for name in sorted(problems))
    return PackageCheck(root, rows, about["paceline"])


def _close_store(directory: Path) -> None:
    """Leave the store as a single file, without its log and the locks of runners."""
    connection = sqlite3.connect(directory / STORE)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    shutil.rmtree(directory / "owners", ignore_errors=True)


def _write_computed(study: "Study", directory: Path) -> None:
    """Write the files that follow from the launches alone."""
    tables = [part for part in study.parts() if isinstance(part, Table)]
    (directory / "tables").mkdir()
    for number, table in enumerate(tables, start=1):
        words = re.findall("[a-z0-9]+", (table.title or "throughput").lower())
        name = "-".join((f"{number:02d}", *words))
        for markup, suffix in SUFFIXES.items():
            write_text(directory / "tables" / f"{name}{suffix}", MARKUPS[markup](table))
    write_text(directory / "results.json", json_text("measure", 1, study.to_dict()))
    environments = {one.id: one.environment for one in study.launches}
    write_text(directory / "environment.json", json_text("environments", 1, environments))
    resources = []
    for name in TABLES:
        path = directory / f"{name}.csv"
        export(path, table=name, study=study.name, store=study.path)
        with path.open(encoding="utf-8") as file:
            columns = file.readline().rstrip("\n").split(",")
        fields = [{"name": column, "type": _TYPES[kind_of(column)]} for column in columns]
        resources.append({"name": name, "path": path.name, "schema": {"fields": fields}})
    # Frictionless Data Package, read by most repositories of research data
    package = {
        "profile": "tabular-data-package",
        "name": file_name(study.name).lower(),
        "resources": resources,
    }
    write_text(directory / "datapackage.json", json.dumps(package, indent=2))


def _write_figures(study: "Study", directory: Path) -> str:
    try:
        study.figures(directory)
    except MissingExtraError as error:
        return error.message
    return ""


def _about(root: Path) -> dict[str, Any]:
    try:
        about = parsed_json(read_text(root / ABOUT, LARGEST_TEXT, "description of a package"))
        return {"study": str(about["study"]), "paceline": str(about["paceline"])}
    except (InputError, ValueError, TypeError, KeyError):
        raise InputError(
            f"'{root}' is not a package of a study", "write one with 'paceline study package STUDY'"
        ) from None


def _sums(root: Path) -> dict[str, str]:
    """Checksum of each file; names outside the package are left out."""
    lines = read_text(root / SUMS, LARGEST_TEXT, "list of checksums").splitlines()
    sums = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    return {name: digest for name, digest in sums.items() if ".." not in Path(name).parts and name}


def _problem(path: Path, digest: str) -> str:
    try:
        return "" if _digest(path) == digest else "changed: its checksum differs"
    except InputError:
        return "missing"


def _own_file(path: Path) -> BufferedReader:
    """Open a file of the package; a link may lead anywhere, also to a file that has no end."""
    with suppress(OSError, ValueError):  # of names that are too long; reported by opened()
        if path.is_symlink():
            raise InputError(f"{path} is a link", "give a package of regular files")
    return opened(path)


def _digest(path: Path) -> str:
    with _own_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _files(root: Path) -> Iterator[str]:
    for path in sorted(root.rglob("*")):
        if path.is_file() and path.name != SUMS:
            yield path.relative_to(root).as_posix()
