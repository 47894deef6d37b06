"""Public functions on labs: create_lab, labs, remove_lab."""

import os
from dataclasses import dataclass
from typing import Any, ClassVar

from paceline.lab.lab_cluster import Lab, known_labs, lab_down, lab_up
from paceline.lab.lab_record import recorded_names
from paceline.lab.settings import DEFAULT_NAME, LabSettings
from paceline.render.result import Part, PublicResult
from paceline.render.table import Column, Table


@dataclass(frozen=True, repr=False)
class LabList(PublicResult):
    """Running labs with their settings and faults."""

    schema: ClassVar[str] = "lab/1"
    labs: tuple[Lab, ...]

    def summary(self) -> str:
        """Names and settings."""
        texts = [f"Lab {lab.name}: {lab.settings.description}" for lab in self.labs]
        return "; ".join(texts) or "No lab is running."

    def parts(self) -> list[Part]:
        """One row per lab."""
        if not self.labs:
            return [self.summary()]
        table = Table.of(
            self.labs,
            (Column("lab"), lambda lab: lab.name),
            (Column("settings"), lambda lab: lab.settings.description),
            (Column("delay by"), lambda lab: lab.record.delay_by or "none"),
            (Column("processes", decimals=0), lambda lab: float(lab.processes())),
            (Column("state"), lambda lab: "; ".join(lab.faults()) or "up"),
        )
        return [table]

    def warnings(self) -> list[str]:
        """Settings that this machine cannot emulate faithfully."""
        found = ((lab.name, text) for lab in self.labs for text in _warnings(lab))
        return [f"warning: {name}: {text}" for name, text in found]

    def to_dict(self) -> dict[str, Any]:
        """Hosts and settings of each lab in SI units."""
        return {"labs": [_fields(lab) for lab in self.labs]}


def create_lab(
    hosts: int,
    *,
    link: str | float | None = None,
    delay: str | float | None = None,
    speed: str | float | None = None,
    name: str = DEFAULT_NAME,
) -> LabList:
    """Create a virtual cluster of ``hosts``; an existing lab of that name is torn down first.

    ``link`` is the bandwidth of each host ("1gbit", bytes/s) [unlimited], ``delay`` the one-way
    delay ("200us", seconds) [none], ``speed`` the CPU time of a host in cores [unlimited].
    """
    given = {"hosts": hosts, "link": link, "delay": delay, "speed": speed}
    wanted = {key: value for key, value in given.items() if value is not None}
    return LabList((lab_up(LabSettings.of(wanted), name),))


def labs() -> LabList:
    """Running labs with their settings and faults."""
    return LabList(tuple(known_labs()))


def remove_lab(name: str | None = DEFAULT_NAME) -> list[str]:
    """Tear down a lab, or all with None; return the names of removed labs."""
    names = recorded_names() if name is None else [name]
    return [each for each in names if lab_down(each)]


def _warnings(lab: Lab) -> tuple[str, ...]:
    return lab.settings.warnings(os.cpu_count() or 1)


def _fields(lab: Lab) -> dict[str, Any]:
    settings = lab.settings
    return {
        "name": lab.name,
        "hosts": [{"name": host.name, "address": host.address} for host in lab.hosts],
        "link_bytes_per_second": settings.link,
        "delay_seconds": settings.delay,
        "speed_cores": settings.speed,
        "delayed_by": lab.record.delay_by,
        "made_at": lab.record.made_at,
        "faults": list(lab.faults()),
        "doubts": list(_warnings(lab)),
    }
