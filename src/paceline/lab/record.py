"""What a lab has on this machine, written down before it is made: any next run can end it."""

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
    """Somebody else uses a lab, or is making or ending it."""


@dataclass(frozen=True)
class LabRecord:
    """Everything that a lab may have made; ``ready`` once all of it was.

    ``delay_by`` is what delays frames: nothing, ``netem`` or ``wire`` (a process of ours).
    ``groups`` are directories of control groups, those of a host together.
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
        """Every namespace."""
        return (*self.hosts, self.switch)

    def to_json(self) -> dict[str, Any]:
        """The record as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> "LabRecord":
        """The record that `to_json` wrote."""
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
    """Where records are: gone after a restart of the machine, as labs are."""
    return Path(os.environ.get(DIRECTORY_VARIABLE) or DEFAULT_DIRECTORY)


def record_path(name: str) -> Path:
    """Where the record of a lab is."""
    return state_directory() / f"{name}.json"


def lock_path(name: str) -> Path:
    """What is locked while a lab is used."""
    return state_directory() / f"{name}.lock"


def recorded_names() -> list[str]:
    """Labs that were begun and not ended."""
    return sorted(path.stem for path in state_directory().glob("*.json"))


def read_record(name: str) -> LabRecord | None:
    """The record of a lab; None if there is none."""
    path = record_path(name)
    try:
        return LabRecord.from_json(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, PacelineError) as error:
        raise InputError(
            f"{path} is no record of a lab: {error}", f"remove {path} and what it named by hand"
        ) from error


def write_record(record: LabRecord) -> None:
    """Write a record, all at once."""
    path = record_path(record.name)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(record.to_json()), encoding="utf-8")
    part.replace(path)


def remove_record(name: str) -> None:
    """Forget a lab of which nothing is left."""
    record_path(name).unlink(missing_ok=True)


@contextmanager
def held(name: str, *, alone: bool) -> Iterator[None]:
    """Hold a lab while ranks run in it, or ``alone`` to make or end it.

    The kernel lets go of it when this process ends, however it does.
    """
    directory = state_directory()
    try:
        directory.mkdir(mode=0o755, parents=True, exist_ok=True)
        file = lock_path(name).open("a+")
    except OSError as error:
        raise InputError(
            f"cannot write in {directory}: {error.strerror}", "a lab needs root (sudo)"
        ) from error
    with file:
        try:
            fcntl.flock(file, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LabInUseError(
                f"the lab '{name}' is in use{_user(name)}",
                "wait until that has ended, or take another with --name",
            ) from None
        if not alone:
            with suppress(OSError):
                (directory / f"{name}.user").write_text(str(os.getpid()), encoding="ascii")
        yield


def _user(name: str) -> str:
    """The process that runs ranks in a lab, in words, where that is known."""
    with suppress(OSError, ValueError):
        user = int((state_directory() / f"{name}.user").read_text(encoding="ascii"))
        if Path(f"/proc/{user}").exists():
            return f" by process {user}"
    return ""
