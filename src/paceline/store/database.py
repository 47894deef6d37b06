"""The store: one SQLite file in write-ahead mode."""

import hashlib
import json
import os
import shutil
import sqlite3
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

from paceline.errors import InputError, PacelineWarning, StoreError
from paceline.json_checks import Check, is_object, parsed_json
from paceline.store.launch import Launch, Outcome
from paceline.store.owner import LockedFile, holder, new_owner, owner_is_alive, remove_dead_owners
from paceline.store.rows import (
    COLUMNS,
    OWNER_ENDED,
    READ,
    DamagedRowError,
    Row,
    is_design,
    launch_of,
    outcome_row,
    row_of,
)
from paceline.user_files import STORE_HINT, check_store_path

APPLICATION_ID = 0x50434C31
SCHEMA_VERSION = 1
BUSY_SECONDS = 30.0
PRIVATE = 0o600
LONGEST_CAUSE = 100
"""Characters of SQLite's message in an error."""
_NO_SHARED_MEMORY = "unable to open", "readonly", "disk I/O error", "is full"
"""Errors when SQLite cannot create the -shm file of a store in WAL mode (sqlite.org/wal.html)."""


def default_store_path() -> Path:
    """``$PACELINE_STORE``, else ``.paceline/paceline.db`` in the current directory."""
    return Path(os.environ.get("PACELINE_STORE", ".paceline/paceline.db"))


def now() -> str:
    """Current time as recorded: UTC, ISO 8601, in milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class Store:
    """Launches, study designs and machine profiles in one file; safe to share between processes.

    When `finish` returns, the launch is on disk: each write is one synchronised transaction, so a
    kill at any time loses no finished launch. Launches whose owner died are read as interrupted. A
    damaged row is named in a `PacelineWarning` and left out.

    Without ``create`` the store is opened read-only, also in a read-only directory.
    """

    def __init__(self, path: Path, create: bool = True) -> None:
        check_store_path(path)
        self.path = path
        self._owners = path.parent / "owners"
        self._owner: tuple[str, LockedFile] | None = None
        if not create and not path.exists():
            raise StoreError(
                f"no store at {path}",
                "create one with 'paceline measure' or 'paceline demo', or give another --store",
            )
        try:
            self._connection = self._created() if create else self._readable()
        except (OSError, ValueError, sqlite3.OperationalError) as error:
            raise StoreError(
                f"cannot open the store {path}: {error}",
                STORE_HINT,
            ) from error
        with self._translated_errors():
            self._prepare(create)

    def _created(self) -> sqlite3.Connection:
        """Connection for writing; the file is readable by its user only."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE))
        return sqlite3.connect(self.path.absolute(), timeout=BUSY_SECONDS, isolation_level=None)

    def _readable(self) -> sqlite3.Connection:
        """Read-only connection, also in a read-only directory and on a full disk."""
        connection = self._connected("mode=ro")
        try:
            connection.execute("SELECT COUNT(*) FROM sqlite_master")
        except sqlite3.OperationalError as error:
            if not any(text in str(error) for text in _NO_SHARED_MEMORY):
                return connection
            connection.close()
            return self._copied() if self._has_log() else self._connected("immutable=1")
        except (sqlite3.DatabaseError, UnicodeDecodeError):
            pass  # reported by _prepare
        return connection

    def _connected(self, mode: str, path: Path | None = None) -> sqlite3.Connection:
        return sqlite3.connect(
            f"{(path or self.path).absolute().as_uri()}?{mode}",
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
        )

    def _has_log(self) -> bool:
        """Whether a killed writer left launches in the write-ahead log."""
        log = _log_of(self.path)
        return log.exists() and log.stat().st_size > 0

    def _copied(self) -> sqlite3.Connection:
        """Connection to a copy, with the launches of the log, which immutable=1 would leave out."""
        with tempfile.TemporaryDirectory(prefix="paceline-") as folder:
            copy = Path(folder) / "store.db"
            try:
                shutil.copyfile(self.path, copy)
                shutil.copyfile(_log_of(self.path), _log_of(copy))
            except OSError as error:
                raise StoreError(
                    f"cannot read the write-ahead log of the store {self.path}: {error.strerror}",
                    "free space for a copy in the temporary directory, or set $TMPDIR",
                ) from error
            connection = self._connected("mode=ro", copy)
            connection.execute("SELECT COUNT(*) FROM sqlite_master")  # opens the log
            return connection

    def close(self) -> None:
        self._connection.close()
        if self._owner is not None:
            self._owner[1].release()
            self._owner = None

    def __repr__(self) -> str:
        return f"<Store {self.path}>"

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self, launch: Launch) -> None:
        """Record the start of a launch, owned by this process."""
        with self._translated_errors():
            row = row_of(launch, self._mark())
            self._connection.execute(f"INSERT INTO launches VALUES ({_PLACES})", row)

    def finish(self, launch_id: str, outcome: Outcome) -> None:
        """Record the outcome of a launch; on return it is on disk.

        A second outcome of the same launch is ignored, unless the first was only assumed because
        its owner appeared to be dead.
        """
        with self._translated_errors():
            self._insert_outcome(launch_id, outcome)

    def complete(self, launch: Launch) -> None:
        """Record a complete launch, started by `start` or not."""
        with self.transaction() as connection:
            connection.execute(
                f"INSERT INTO launches VALUES ({_PLACES}) "
                f"ON CONFLICT (id) DO UPDATE SET {_RENEWED}",
                row_of(launch, self._mark()),
            )
            self._insert_outcome(launch.id, launch.outcome)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Transaction for several changes."""
        with self._translated_errors():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def rows(self, query: str, values: Iterable[Any] = ()) -> list[Row]:
        with self._translated_errors():
            return self._connection.execute(query, tuple(values)).fetchall()

    def _insert_outcome(self, launch_id: str, outcome: Outcome) -> None:
        self._connection.execute(
            "INSERT INTO outcomes VALUES (?,?,?,?,?) ON CONFLICT (launch_id) DO UPDATE SET "
            "status = excluded.status, ended_at = excluded.ended_at, reason = excluded.reason, "
            # Only an outcome that was assumed for a dead owner is replaced.
            "result = excluded.result WHERE outcomes.reason = ?",
            (*outcome_row(launch_id, outcome), OWNER_ENDED),
        )

    def _mark(self) -> str:
        """Owner mark of this process, created with its first launch."""
        if self._owner is None:
            try:
                self._owner = new_owner(self._owners)
            except OSError as error:
                raise StoreError(
                    f"cannot write to the directory of the store {self.path}: {error}",
                    STORE_HINT,
                ) from error
        return self._owner[0]

    @contextmanager
    def locked_study(self, name: str) -> Iterator[None]:
        """Hold the lock of a study; an error if another process runs it."""
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        path = self._owners / f"study-{digest}"
        held = LockedFile.take(path)
        if held is None:
            raise InputError(
                f"study '{name}' is being measured by {holder(path)}",
                "wait for it to end, or stop it: finished launches are kept",
            )
        try:
            yield
        finally:
            held.release()

    def abandoned(self) -> list[Launch]:
        """Launches without an outcome whose owner is dead; removes lock files of dead owners."""
        launches = list(self._read("WHERE outcomes.launch_id IS NULL"))
        remove_dead_owners(self._owners)
        return [launch for launch in launches if launch.outcome.reason == OWNER_ENDED]

    def launches(self, study: str | None = None, newest: int | None = None) -> list[Launch]:
        """Launches in order of their start, of one study or of all; or only the newest."""
        if newest is None:
            return list(self.each_launch(study))
        where, values = _of_study(study)
        end = "ORDER BY launches.rowid DESC LIMIT ?"
        return list(self._read(f"{where} {end}", (*values, newest)))[::-1]

    def each_launch(self, study: str | None = None) -> Iterator[Launch]:
        """Iterate over launches in order of their start, with constant memory."""
        where, values = _of_study(study)
        return self._read(f"{where} ORDER BY launches.rowid", values)

    def count(self, study: str | None = None) -> int:
        """Number of launches, of one study or of all."""
        where, values = _of_study(study)
        return int(self.rows(f"SELECT COUNT(*) FROM launches {where}", values)[0][0])

    def _read(self, end: str, values: Iterable[Any] = ()) -> Iterator[Launch]:
        with self._translated_errors():
            rows = self._connection.execute(
                f"SELECT {READ} FROM launches "
                f"LEFT JOIN outcomes ON outcomes.launch_id = launches.id {end}",
                tuple(values),
            )
            for row in rows:
                try:
                    yield launch_of(row, lambda owner: owner_is_alive(owner, self._owners))
                except DamagedRowError as error:
                    self._warn(row, error)

    def _warn(self, row: Row, error: DamagedRowError) -> None:
        warnings.warn(
            f"left out the damaged launch {row[0]} of the store {self.path}: {error}",
            PacelineWarning,
            stacklevel=4,
        )

    def launch(self, prefix: str) -> Launch:
        """The one launch whose id begins with ``prefix``; an empty prefix is no id."""
        where, values = "WHERE substr(id, 1, ?) = ? LIMIT 100", (len(prefix), prefix)
        found = list(self._read(where, values)) if prefix else []
        if len(found) != 1:
            problem = f"{len(found)} launches begin" if found else "no launch begins"
            raise StoreError(
                f"{problem} with '{prefix}'", "list the ids with 'paceline study list --launches'"
            )
        return found[0]

    def studies(self) -> list[str]:
        """Names of the studies that have launches, oldest first."""
        found = self.rows("SELECT study FROM launches GROUP BY study ORDER BY MIN(rowid)")
        return [name for (name,) in found]

    def factors(self, study: str | None = None) -> list[str]:
        """Names of the factors of launches, in alphabetical order."""
        where, values = _of_study(study)
        found = self.rows(
            "SELECT DISTINCT each.key FROM (SELECT job FROM launches "
            f"{where or 'WHERE 1'} AND json_valid(job)), json_each(job, '$.factors') AS each",
            values,
        )
        return sorted(str(name) for (name,) in found)

    def study(self, name: str) -> list[Launch]:
        """Launches of a study in order of their start; an error if it has none."""
        launches = self.launches(name)
        if not launches:
            raise self.no_study(name)
        return launches

    def no_study(self, name: str) -> InputError:
        """Error for a missing study, with the newest studies as a hint."""
        known = self.studies()[:-6:-1]
        hint = f"newest studies: {', '.join(known)}" if known else "the store has no studies yet"
        return InputError(f"no study named '{name}'", hint)

    def save_design(self, study: str, design: dict[str, Any], replace: bool = False) -> None:
        """Save the design of a study, so that the study can be resumed.

        With ``replace`` a saved design is replaced: the study was extended or ended.
        """
        again = "ON CONFLICT (study) DO UPDATE SET design = excluded.design" if replace else ""
        with self._translated_errors():
            self._connection.execute(
                f"INSERT INTO designs VALUES (?,?,?) {again}", (study, now(), json.dumps(design))
            )

    def design(self, study: str) -> dict[str, Any] | None:
        """Design of a study; None if there is no such study."""
        found = self.rows("SELECT design FROM designs WHERE study = ?", (study,))
        what = f"the design of study '{study}'"
        return self._document(found[0][0], what, is_design) if found else None

    def save_profile(self, machine: str, profile: dict[str, Any]) -> None:
        """Save the profile of a machine; older profiles are kept."""
        with self._translated_errors():
            self._connection.execute(
                "INSERT INTO profiles (machine, created_at, profile) VALUES (?,?,?)",
                (machine, now(), json.dumps(profile)),
            )

    def latest_profile(self, machine: str) -> dict[str, Any] | None:
        """Newest profile of a machine; None if it was never probed."""
        query = "SELECT profile FROM profiles WHERE machine = ? ORDER BY id DESC LIMIT 1"
        found = self.rows(query, (machine,))
        return self._document(found[0][0], f"the profile of {machine}") if found else None

    def _document(self, text: Any, what: str, check: Check = is_object) -> dict[str, Any]:
        try:
            document = parsed_json(text)
        except (TypeError, ValueError):
            document = None
        if not check(document):
            raise StoreError(
                f"{what} in the store {self.path} is damaged", "name another file with --store"
            )
        return dict(document)

    def _prepare(self, create: bool) -> None:
        connection = self._connection
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        tables = connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]
        if application == 0 and tables == 0:
            if not create:
                raise StoreError(
                    f"{self.path} is empty, not a store", "name another file with --store"
                )
            self._create()
            return
        if application != APPLICATION_ID:
            raise StoreError(
                f"{self.path} belongs to another program", "name another file with --store"
            )
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version != SCHEMA_VERSION:
            raise StoreError(
                f"{self.path} has schema version {version}; this Paceline reads {SCHEMA_VERSION}",
                "use the Paceline version that wrote it, or name another file with --store",
            )
        if create:
            connection.execute("PRAGMA synchronous = FULL")

    def _create(self) -> None:
        """Write the schema in one transaction; another process may do the same concurrently."""
        schema = files("paceline.store").joinpath("schema.sql").read_text(encoding="utf-8")
        connection = self._connection
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("BEGIN IMMEDIATE")
        if connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0] == 0:
            for statement in _statements(schema):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # damaged names of tables
            text = str(error).partition("\n")[0][:LONGEST_CAUSE]  # SQLite quotes the schema
            damaged = "not a database", "malformed", "decode", "unsupported file format"
            if any(word in text for word in damaged):
                raise StoreError(
                    f"{self.path} is not a Paceline store ({text})",
                    "name another file with --store, or repair a damaged one with 'sqlite3 FILE "
                    ".recover'",
                ) from error
            if "full" in text:
                raise StoreError(
                    f"no space left for the store {self.path}", "free some disk space, then rerun"
                ) from error
            raise StoreError(
                f"cannot use the store {self.path}: {text}",
                "check that its directory is writable and that no other program locks it",
            ) from error


_PLACES = ",".join("?" for _ in COLUMNS)
_RENEWED = ", ".join(f"{column} = excluded.{column}" for column in COLUMNS[1:])


def _log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _of_study(study: str | None) -> tuple[str, tuple[str, ...]]:
    return ("", ()) if study is None else ("WHERE study = ?", (study,))


def _statements(schema: str) -> list[str]:
    lines = [line for line in schema.splitlines() if not line.startswith("--")]
    return [part.strip() for part in "\n".join(lines).split(";") if part.strip()]
