"""Lists, renames, deletes, annotates and merges the studies of a store."""

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from paceline.errors import InputError, StoreError
from paceline.store.database import Store, now
from paceline.store.launch import Status

_NOTES = (
    "CREATE TABLE IF NOT EXISTS annotations "
    "(id INTEGER PRIMARY KEY AUTOINCREMENT, subject TEXT NOT NULL, created_at TEXT NOT NULL, "
    "note TEXT NOT NULL)"
)


@dataclass(frozen=True)
class StudySummary:
    """Summary of a study: launches by status, models, frameworks and notes."""

    name: str
    launches: int
    finished: int
    failed: int
    models: str
    frameworks: str
    last_at: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class MergeCount:
    """Result of a merge: launches copied, already present and left out; renamed studies."""

    copied: int
    known: int
    unfinished: int
    renamed: dict[str, str]


def study_summaries(store: Store) -> list[StudySummary]:
    """Every study, oldest first; launches are counted without reading them."""
    found = store.rows(
        "SELECT study, COUNT(*), SUM(status = 'finished'), SUM(status = 'failed'), "
        "GROUP_CONCAT(DISTINCT model), GROUP_CONCAT(DISTINCT framework), "
        "MAX(created_at) FROM launches "
        "LEFT JOIN outcomes ON outcomes.launch_id = launches.id "
        "GROUP BY study ORDER BY MIN(launches.rowid)"
    )
    return [
        StudySummary(
            str(name),
            count,
            good or 0,
            bad or 0,
            str(models),
            str(frameworks),
            str(last),
            notes_of(store, str(name)),
        )
        for name, count, good, bad, models, frameworks, last in found
    ]


def notes_of(store: Store, subject: str) -> tuple[str, ...]:
    """Notes of a study or launch, oldest first."""
    if not store.rows("SELECT 1 FROM sqlite_master WHERE name = 'annotations'"):
        return ()
    query = "SELECT note FROM annotations WHERE subject = ? ORDER BY id"
    return tuple(str(note) for (note,) in store.rows(query, (subject,)))


def annotate(store: Store, subject: str, note: str) -> None:
    """Add a note to a study, or to the one launch whose id begins with ``subject``."""
    if not note.strip():
        raise InputError("the note is empty", "give the note in quotes")
    if subject not in store.studies():
        subject = store.launch(subject).id
    with store.transaction() as connection:
        connection.execute(_NOTES)
        connection.execute(
            "INSERT INTO annotations (subject, created_at, note) VALUES (?,?,?)",
            (subject, now(), note),
        )


def rename_study(store: Store, old: str, new: str) -> None:
    """Rename a study; an error if the name exists or the study is being measured."""
    _check_known(store, old)
    if new in store.studies() or store.design(new) is not None:
        raise InputError(f"a study named '{new}' already exists", "choose another name")
    with store.locked_study(old), store.transaction() as connection:
        connection.execute("UPDATE launches SET study = ? WHERE study = ?", (new, old))
        connection.execute("UPDATE designs SET study = ? WHERE study = ?", (new, old))
        if notes_of(store, old):
            connection.execute("UPDATE annotations SET subject = ? WHERE subject = ?", (new, old))


def delete_study(store: Store, name: str) -> int:
    """Delete a study with its launches and their logs; return the number of launches."""
    _check_known(store, name)
    with store.locked_study(name):
        ids = [row[0] for row in store.rows("SELECT id FROM launches WHERE study = ?", (name,))]
        with store.transaction() as connection:
            own = "(SELECT id FROM launches WHERE study = ?)"
            connection.execute(f"DELETE FROM outcomes WHERE launch_id IN {own}", (name,))
            if store.rows("SELECT 1 FROM sqlite_master WHERE name = 'annotations'"):
                connection.execute(
                    f"DELETE FROM annotations WHERE subject = ? OR subject IN {own}", (name, name)
                )
            connection.execute("DELETE FROM launches WHERE study = ?", (name,))
            connection.execute("DELETE FROM designs WHERE study = ?", (name,))
    for launch_id in ids:
        # An id with a path separator in a damaged store must not delete files elsewhere.
        if isinstance(launch_id, str) and launch_id.isalnum():
            shutil.rmtree(store.path.parent / "launches" / launch_id, ignore_errors=True)
    return len(ids)


def merge_stores(store: Store, other: Path) -> MergeCount:
    """Copy the ended launches of another store into this one, with designs and notes.

    Launches that are already present stay unchanged. A study whose name exists here is renamed.
    Logs are not copied.
    """
    if other.exists() and other.samefile(store.path):
        raise StoreError(f"cannot merge {other} into itself", "name another store")
    copied = known = unfinished = 0
    renamed: dict[str, str] = {}
    with Store(other, create=False) as source:
        here = {row[0] for row in store.rows("SELECT id FROM launches")}
        for name in source.studies():
            launches = source.launches(name)
            new = [launch for launch in launches if launch.id not in here]
            known += len(launches) - len(new)
            target = name if len(new) < len(launches) else _free_name(store, name, other.stem)
            if target != name:
                renamed[name] = target
            for launch in new:
                if launch.status in (Status.RUNNING, Status.INTERRUPTED):
                    unfinished += 1
                    continue
                store.complete(replace(launch, study=target))
                copied += 1
            design = source.design(name)
            if design is not None and store.design(target) is None:
                store.save_design(target, design)
            for note in notes_of(source, name):
                if target in store.studies() and note not in notes_of(store, target):
                    annotate(store, target, note)
    return MergeCount(copied, known, unfinished, renamed)


def copy_study(source: Store, target: Store, name: str) -> None:
    """Copy a study with its ended launches, its design and its notes to an empty store."""
    for launch in source.launches(name):
        if launch.status not in (Status.RUNNING, Status.INTERRUPTED):
            target.complete(launch)
    design = source.design(name)
    if design is not None:
        target.save_design(name, design)
    for note in notes_of(source, name):
        annotate(target, name, note)


def _free_name(store: Store, name: str, origin: str) -> str:
    taken = set(store.studies())
    if name not in taken:
        return name
    candidates = (f"{name}-{origin}{'' if n == 1 else f'-{n}'}" for n in range(1, len(taken) + 2))
    return next(candidate for candidate in candidates if candidate not in taken)


def _check_known(store: Store, name: str) -> None:
    if name not in store.studies() and store.design(name) is None:
        raise store.no_study(name)
