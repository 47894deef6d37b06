"""The store: one SQLite file in write-ahead mode."""

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

from paceline.errors import StoreError
from paceline.step import step_from_json, step_to_json
from paceline.store.launch import Launch, LayerTiming, Outcome, RankSteps, Status
from paceline.store.owner import owner_is_alive, this_process

APPLICATION_ID = 0x50434C31
SCHEMA_VERSION = 1
BUSY_SECONDS = 30.0
OWNER_ENDED = "the process that ran it was ended"


def default_store_path() -> Path:
    """``$PACELINE_STORE``, else ``.paceline/paceline.db`` in the current directory."""
    return Path(os.environ.get("PACELINE_STORE", ".paceline/paceline.db"))


def now() -> str:
    """The time of day as every record has it: UTC, ISO 8601, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class Store:
    """Launches, study designs and machine profiles in one file; safe to share between processes.

    What `finish` has returned for is on disk: each write is one transaction, synchronised, so a
    kill at any moment loses no finished launch. Launches whose owner died are read as
    interrupted.
    """

    def __init__(self, path: Path, create: bool = True) -> None:
        self.path = path
        if not create and not path.exists():
            raise StoreError(
                f"there is no store at {path}",
                "'paceline measure' or 'paceline demo' makes one; --store names another",
            )
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
        except (OSError, sqlite3.Error) as error:
            raise StoreError(
                f"cannot open the store {path}: {error}",
                "choose a writable place with --store or $PACELINE_STORE",
            ) from error
        with self._explained():
            self._prepare()

    def close(self) -> None:
        """Close the file; the object is of no use afterwards."""
        self._connection.close()

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self, launch: Launch) -> None:
        """Record that a launch begins now and belongs to this process."""
        with self._explained():
            self._connection.execute(f"INSERT INTO launches VALUES ({_PLACES})", _row_of(launch))

    def finish(self, launch_id: str, outcome: Outcome) -> None:
        """Record how a launch ended; when this returns, it is on disk.

        A second outcome for the same launch is ignored.
        """
        with self._explained():
            self._insert_outcome(launch_id, outcome)

    def complete(self, launch: Launch) -> None:
        """Record a launch that is known in full only now, begun by `start` or not."""
        with self._explained():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._connection.execute(
                    f"INSERT INTO launches VALUES ({_PLACES}) "
                    f"ON CONFLICT (id) DO UPDATE SET {_RENEWED}",
                    _row_of(launch),
                )
                self._insert_outcome(launch.id, launch.outcome)
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def _insert_outcome(self, launch_id: str, outcome: Outcome) -> None:
        self._connection.execute(
            "INSERT OR IGNORE INTO outcomes VALUES (?,?,?,?,?)",
            (
                launch_id,
                str(outcome.status),
                outcome.ended_at,
                outcome.reason,
                json.dumps(_outcome_to_json(outcome)),
            ),
        )

    def mark_interrupted(self) -> int:
        """Close every launch whose owner is gone without an outcome; how many there were."""
        orphans = [
            launch.id
            for launch in self.launches()
            if launch.status is Status.INTERRUPTED and not launch.outcome.ended_at
        ]
        for launch_id in orphans:
            self.finish(launch_id, Outcome(Status.INTERRUPTED, now(), OWNER_ENDED))
        return len(orphans)

    def launches(self, study: str | None = None) -> list[Launch]:
        """Launches in the order in which they began, of one study or of all."""
        where, values = ("WHERE study = ?", (study,)) if study else ("", ())
        with self._explained():
            rows = self._connection.execute(
                "SELECT launches.*, status, ended_at, reason, result FROM launches "
                f"LEFT JOIN outcomes ON outcomes.launch_id = launches.id {where} "
                "ORDER BY launches.rowid",
                values,
            ).fetchall()
            return [_launch_of(row) for row in rows]

    def launch(self, prefix: str) -> Launch:
        """The one launch whose id begins with ``prefix``."""
        found = [launch for launch in self.launches() if launch.id.startswith(prefix)]
        if len(found) != 1:
            problem = f"{len(found)} launches begin" if found else "no launch begins"
            raise StoreError(f"{problem} with '{prefix}'", "'paceline list' shows the ids")
        return found[0]

    def studies(self) -> list[str]:
        """Names of the studies that have launches, oldest first."""
        with self._explained():
            rows = self._connection.execute(
                "SELECT study FROM launches GROUP BY study ORDER BY MIN(rowid)"
            )
            return [row[0] for row in rows]

    def save_design(self, study: str, design: dict[str, Any]) -> None:
        """Keep what a study set out to do, so that it can be continued."""
        with self._explained():
            self._connection.execute(
                "INSERT INTO designs VALUES (?,?,?)", (study, now(), json.dumps(design))
            )

    def design(self, study: str) -> dict[str, Any] | None:
        """What a study set out to do; None if there is no such study."""
        with self._explained():
            row = self._connection.execute(
                "SELECT design FROM designs WHERE study = ?", (study,)
            ).fetchone()
            return None if row is None else dict(json.loads(row[0]))

    def save_profile(self, machine: str, profile: dict[str, Any]) -> None:
        """Keep what was measured of a machine; older profiles stay."""
        with self._explained():
            self._connection.execute(
                "INSERT INTO profiles (machine, created_at, profile) VALUES (?,?,?)",
                (machine, now(), json.dumps(profile)),
            )

    def latest_profile(self, machine: str) -> dict[str, Any] | None:
        """The newest profile of a machine; None if it was never probed."""
        with self._explained():
            row = self._connection.execute(
                "SELECT profile FROM profiles WHERE machine = ? ORDER BY id DESC LIMIT 1",
                (machine,),
            ).fetchone()
            return None if row is None else dict(json.loads(row[0]))

    def _prepare(self) -> None:
        connection = self._connection
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        tables = connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]
        if application == 0 and tables == 0:
            self._create()
            return
        if application != APPLICATION_ID:
            raise StoreError(
                f"{self.path} is a database of another program", "name another file with --store"
            )
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version != SCHEMA_VERSION:
            raise StoreError(
                f"{self.path} has schema version {version}, this Paceline reads {SCHEMA_VERSION}",
                "use the Paceline that wrote it, or another file with --store",
            )
        connection.execute("PRAGMA synchronous = FULL")

    def _create(self) -> None:
        """Write the schema in one transaction; another process may be doing the same."""
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
    def _explained(self) -> Iterator[None]:
        """Turn SQLite's errors into one line and a hint."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            text = str(error)
            if "not a database" in text or "malformed" in text:
                raise StoreError(
                    f"{self.path} is not a Paceline store ({text})",
                    "name another file with --store; a damaged one may be saved by 'sqlite3 "
                    "FILE .recover'",
                ) from error
            if "full" in text:
                raise StoreError(
                    f"no space left for the store {self.path}", "free some disk space and go on"
                ) from error
            raise StoreError(
                f"the store {self.path} cannot be used: {text}",
                "is its directory writable, and no other program holding it?",
            ) from error


_COLUMNS = [
    "id",
    "study",
    "created_at",
    "framework",
    "model",
    "world_size",
    "nodes",
    "batch_per_rank",
    "precision",
    "instrument",
    "synchronised",
    "warmup_steps",
    "provenance",
    "owner",
    "job",
    "environment",
]
_PLACES = ",".join("?" for _ in _COLUMNS)
_RENEWED = ", ".join(f"{column} = excluded.{column}" for column in _COLUMNS[1:])


def _row_of(launch: Launch) -> tuple[Any, ...]:
    """The row of a launch that belongs to this process."""
    written = {
        "synchronised": int(launch.synchronised),
        "owner": this_process(),
        "job": json.dumps(launch.job),
        "environment": json.dumps(launch.environment),
    }
    return tuple(
        written[column] if column in written else getattr(launch, column) for column in _COLUMNS
    )


def _statements(schema: str) -> list[str]:
    lines = [line for line in schema.splitlines() if not line.startswith("--")]
    return [part.strip() for part in "\n".join(lines).split(";") if part.strip()]


def _outcome_to_json(outcome: Outcome) -> dict[str, Any]:
    return {
        "ranks": [asdict(rank) for rank in outcome.ranks],
        "layers": [asdict(layer) for layer in outcome.layers],
        "timeline": None if outcome.timeline is None else step_to_json(outcome.timeline),
        "facts": outcome.facts,
    }


def _launch_of(row: tuple[Any, ...]) -> Launch:
    fields = dict(zip(_COLUMNS, row, strict=False))
    owner = fields.pop("owner")
    status, ended_at, reason, result = row[len(_COLUMNS) :]
    if status is None:
        alive = owner_is_alive(owner)
        outcome = Outcome(
            Status.RUNNING if alive else Status.INTERRUPTED,
            "",
            "" if alive else OWNER_ENDED,
        )
    else:
        outcome = _outcome_from_json(Status(status), ended_at, reason, json.loads(result))
    read = {
        "synchronised": bool(fields["synchronised"]),
        "job": json.loads(fields["job"]),
        "environment": json.loads(fields["environment"]),
    }
    return Launch(**{**fields, **read}, outcome=outcome)


def _outcome_from_json(
    status: Status, ended_at: str, reason: str, result: dict[str, Any]
) -> Outcome:
    return Outcome(
        status=status,
        ended_at=ended_at,
        reason=reason,
        ranks=tuple(
            RankSteps(
                item["rank"],
                tuple(item["wall_seconds"]),
                tuple(item["cpu_seconds"]),
                tuple(item["losses"]),
            )
            for item in result["ranks"]
        ),
        layers=tuple(LayerTiming(**item) for item in result["layers"]),
        timeline=None if result["timeline"] is None else step_from_json(result["timeline"]),
        facts=result["facts"],
    )
