"""The record of a lab, written before the lab is created so that any later run can remove it."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from paceline.errors import InputError, PacelineError
from paceline.lab.settings import LabSettings

DIRECTORY_VARIABLE = "PACELINE_LAB_STATE"
DEFAULT_DIRECTORY = "/run/paceline-lab"


class LabInUseError(InputError):
    """Another process uses, creates or removes the lab."""


@dataclass(frozen=True)
class LabRecord:
    """Everything that a lab consists of; ``ready`` once all of it exists.

    ``delay_by`` is the source of the delay: none, ``netem`` or ``wire`` (`paceline.lab.wire`).
    ``groups`` are the control-group directories of each host.
    """

    name: str
    settings: LabSettings
    hosts: tuple[str, ...]
    switch: str
    groups: tuple[tuple[str, ...], ...] = ()
    delay_by: str = ""
    ready: bool = False
    made_at: str = ""
    notes: tuple[str, ...] = field(default=())

    @property
    def namespaces(self) -> tuple[str, ...]:
        return (*self.hosts, self.switch)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> "LabRecord":
        return cls(
            **{
                **document,
                "settings": LabSettings(**document["settings"]),
                "hosts": tuple(document["hosts"]),
                "groups": tuple(tuple(own) for own in document["groups"]),
                "notes": tuple(document["notes"]),
            }
        )


def state_directory() -> Path:
    """Return the directory of records; like labs, it does not survive a reboot."""
    return Path(os.environ.get(DIRECTORY_VARIABLE) or DEFAULT_DIRECTORY)


def record_path(name: str) -> Path:
    return state_directory() / f"{name}.json"


def lock_path(name: str) -> Path:
    return state_directory() / f"{name}.lock"


def recorded_names() -> list[str]:
    return sorted(path.stem for path in state_directory().glob("*.json"))


def read_record(name: str) -> LabRecord | None:
    path = record_path(name)
    try:
        return LabRecord.from_json(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, PacelineError) as error:
        raise InputError(
            f"{path} is not a valid lab record: {error}",
            f"remove {path} and the namespaces of the lab",
        ) from error


def write_record(record: LabRecord) -> None:
    path = record_path(record.name)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(record.to_json()), encoding="utf-8")
    part.replace(path)


def remove_record(name: str) -> None:
    record_path(name).unlink(missing_ok=True)


@contextmanager
def lab_lock(name: str, *, exclusive: bool) -> Iterator[None]:
    """Lock a lab while ranks run in it, or exclusively to create or remove it.

    The kernel releases the lock when this process ends.
    """
    directory = state_directory()
    try:
        directory.mkdir(mode=0o755, parents=True, exist_ok=True)
        file = lock_path(name).open("a+")
    except OSError as error:
        raise InputError(
            f"cannot write to {directory}: {error.strerror}", "run as root (sudo)"
        ) from error
    with file:
        try:
            fcntl.flock(file, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LabInUseError(
                f"the lab '{name}' is in use{_user(name)}",
                "wait until it ends, or use another lab with --name",
            ) from None
        if not exclusive:
            with suppress(OSError):
                (directory / f"{name}.user").write_text(str(os.getpid()), encoding="ascii")
        yield


def _user(name: str) -> str:
    """Describe the process that runs ranks in a lab, where known."""
    with suppress(OSError, ValueError):
        user = int((state_directory() / f"{name}.user").read_text(encoding="ascii"))
        if Path(f"/proc/{user}").exists():
            return f" by process {user}"
    return ""
