"""Public functions on recorded studies: list, show, rename, delete, annotate, merge, export."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from paceline.errors import InputError, StoreError
from paceline.render.files import write_text, written
from paceline.render.result import PublicResult
from paceline.render.table import Column, Table
from paceline.store import housekeeping
from paceline.store.database import Store, default_store_path
from paceline.store.housekeeping import MergeCount, StudySummary
from paceline.store.launch import Launch
from paceline.store.tidy_tables import FORMATS, tidy_rows
from paceline.units import plural

LONGEST_VALUE = 400


def open_store(store: Path | str | None, create: bool = False) -> Store:
    """Open the store at a path [the default store]; the caller closes it."""
    return Store(Path(store) if store is not None else default_store_path(), create=create)


@dataclass(frozen=True, repr=False)
class StudyList(PublicResult):
    """The studies of a store, oldest first."""

    schema: ClassVar[str] = "studies/1"
    studies: tuple[StudySummary, ...]

    def parts(self) -> list[str | Table]:
        """One row per study."""
        table = Table.of(
            self.studies,
            (Column("study"), lambda one: one.name),
            (Column("launches", decimals=0), lambda one: one.launches),
            (Column("finished", decimals=0), lambda one: one.finished),
            (Column("failed", decimals=0), lambda one: one.failed),
            (Column("models"), lambda one: one.models),
            (Column("frameworks"), lambda one: one.frameworks),
            (Column("last"), lambda one: one.last_at[:16].replace("T", " ")),
            (Column("notes"), lambda one: "; ".join(one.notes)),
            note=f"{plural(len(self.studies), 'study')}; times are in UTC.",
        )
        return [table]

    def summary(self) -> str:
        """The number of studies."""
        return plural(len(self.studies), "study")


@dataclass(frozen=True, repr=False)
class LaunchList(PublicResult):
    """Recorded launches, newest last, out of ``total``."""

    schema: ClassVar[str] = "list/1"
    launches: tuple[Launch, ...]
    total: int

    def __iter__(self) -> Iterator[Launch]:
        return iter(self.launches)

    def __len__(self) -> int:
        return len(self.launches)

    def parts(self) -> list[str | Table]:
        """One row per launch."""
        from paceline.analysis.launch_tables import launch_table

        return [launch_table(self.launches, f"{self.summary()}.", of_one_study=False)]

    def summary(self) -> str:
        """The number of launches."""
        return f"{len(self.launches):,} of {plural(self.total, 'launch')}"

    def to_dict(self) -> dict[str, Any]:
        """Settings, outcome and results of each launch."""
        from paceline.analysis.launch_tables import launches_json

        return {"launches": launches_json(self.launches)}


@dataclass(frozen=True, repr=False)
class LaunchDetails(PublicResult):
    """Everything recorded about one launch; ``files`` are its logs and a written trace."""

    schema: ClassVar[str] = "show/1"
    launch: Launch
    files: tuple[tuple[str, Path], ...] = ()

    def parts(self) -> list[str | Table]:
        """One line per field."""
        lines: list[str | Table] = []
        for key, value in self.to_dict().items():
            text = str(value if isinstance(value, str | int | float) else json.dumps(value))
            cut = f"{text[:LONGEST_VALUE]} ..." if len(text) > LONGEST_VALUE else text
            lines.append(f"{key:32} {cut}")
        return [*lines, *(f"{name:32} {path}" for name, path in self.files)]

    def summary(self) -> str:
        """Id, model and status."""
        return f"{self.launch.id}: {self.launch.model}, {self.launch.status}"

    def to_dict(self) -> dict[str, Any]:
        """Job, environment, outcome and steps."""
        from paceline.analysis.launch_tables import launch_record

        return launch_record(self.launch)

    def rows(self) -> Sequence[dict[str, Any]]:
        """One row: nested lists stay in one cell."""
        return [self.to_dict()]


@dataclass(frozen=True, repr=False)
class ExportedTable(PublicResult):
    """A table that was written to ``path``."""

    schema: ClassVar[str] = "export/1"
    path: Path
    table: str
    rows_written: int

    def parts(self) -> list[str | Table]:
        """The number of rows and the file."""
        return [f"Wrote {plural(self.rows_written, 'row')} of {self.table} to {self.path}"]

    def to_dict(self) -> dict[str, Any]:
        """Path, table and number of rows."""
        return {"path": str(self.path), "table": self.table, "rows": self.rows_written}


def studies(*, store: Path | str | None = None) -> StudyList:
    """Every study of a store, with its launches by status and its notes."""
    with open_store(store) as opened:
        return StudyList(tuple(housekeeping.study_summaries(opened)))


def launches(
    study: str | None = None, *, last: int | None = None, store: Path | str | None = None
) -> LaunchList:
    """The ``last`` launches [all] of a study [every study], newest last."""
    with open_store(store) as opened:
        total = opened.count(study)
        if study is not None and not total:
            raise opened.no_study(study)
        return LaunchList(tuple(opened.launches(study, newest=last)), total)


def show(
    subject: str,
    *,
    last: int | None = None,
    trace: Path | str | None = None,
    store: Path | str | None = None,
) -> LaunchList | LaunchDetails:
    """The launches of a study, or everything recorded about one launch.

    ``subject`` is the name of a study or a prefix of a launch id. Of a study, the ``last`` launches
    are returned [all]; of a launch, ``trace`` names a file for its step as a Chrome trace.
    """
    with open_store(store) as opened:
        if opened.count(subject):
            if trace is not None:
                raise InputError(
                    f"'{subject}' is a study; --trace needs a launch", "give the id of a launch"
                )
            return LaunchList(tuple(opened.launches(subject, newest=last)), opened.count(subject))
        if last is not None:
            raise InputError(f"'{subject}' is not a study", "omit --last for a launch")
        try:
            launch = opened.launch(subject)
        except StoreError as error:
            message = f"no study is named '{subject}', and {error.message}"
            raise InputError(message, opened.no_study(subject).hint) from None
        logs = opened.path.parent / "launches" / launch.id
    files = [("logs", logs)] if logs.exists() else []
    if trace is not None:
        files.append(("trace", _write_trace(launch, Path(trace))))
    return LaunchDetails(launch, tuple(files))


def rename_study(study: str, new: str, *, store: Path | str | None = None) -> None:
    """Rename a study."""
    with _writable(store) as opened:
        housekeeping.rename_study(opened, study, new)


def delete_study(study: str, *, store: Path | str | None = None) -> int:
    """Delete a study with its launches and their logs; return the number of launches."""
    with _writable(store) as opened:
        return housekeeping.delete_study(opened, study)


def annotate(subject: str, note: str, *, store: Path | str | None = None) -> None:
    """Add a note to a study, or to the launch whose id begins with ``subject``."""
    with _writable(store) as opened:
        housekeeping.annotate(opened, subject, note)


@dataclass(frozen=True, repr=False)
class MergedStores(PublicResult):
    """Launches copied from ``other``."""

    schema: ClassVar[str] = "merge/1"
    other: Path
    count: MergeCount

    def parts(self) -> list[str | Table]:
        """Launches copied and left out, and renamed studies."""
        found = self.count
        lines: list[str | Table] = [
            f"Copied {plural(found.copied, 'launch')}; {found.known} already present"
        ]
        if found.unfinished:
            lines.append(f"Skipped {plural(found.unfinished, 'unfinished launch')}")
        renamed = found.renamed.items()
        return lines + [f"Study {old} of {self.other} was renamed to {new}" for old, new in renamed]

    def to_dict(self) -> dict[str, Any]:
        """Number of launches by outcome, and renamed studies."""
        return {"other": str(self.other), **asdict(self.count)}


def merge_store(other: Path | str, *, store: Path | str | None = None) -> MergedStores:
    """Copy the launches of the store ``other``; those already present are skipped."""
    with open_store(store, create=True) as opened:
        return MergedStores(Path(other), housekeeping.merge_stores(opened, Path(other)))


def export(
    path: Path | str,
    *,
    table: str = "launches",
    study: str | None = None,
    store: Path | str | None = None,
) -> ExportedTable:
    """Write launches as a tidy table; the suffix of ``path`` selects CSV or Parquet.

    ``table`` is launches, steps, phases or layers: one row per launch, per step or phase of each
    rank, or per layer. ``study`` selects one study [all].
    """
    file = Path(path)
    if file.suffix not in FORMATS:
        raise InputError(
            f"unknown format of '{file.name}'",
            f"use the suffix .csv or .parquet, such as {table}.csv",
        )
    with open_store(store) as opened:
        if study is not None and not opened.count(study):
            raise opened.no_study(study)
        with written(file) as out:
            each = tidy_rows(table, opened.each_launch(study), opened.factors(study))
            return ExportedTable(file, table, FORMATS[file.suffix](each, out))


def _write_trace(launch: Launch, path: Path) -> Path:
    from paceline.step.serialise import chrome_trace

    if launch.outcome.timeline is None:
        raise InputError(
            f"launch {launch.id} has no timeline",
            "measure one with 'paceline measure --instrument phases'",
        )
    return write_text(path, chrome_trace(launch.outcome.timeline))


def _writable(store: Path | str | None) -> Store:
    """Open an existing store for writing: opening a missing one would create it."""
    open_store(store).close()
    return open_store(store, create=True)
