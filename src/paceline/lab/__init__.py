"""Virtual clusters on one Linux machine: hosts in network namespaces with shaped links."""

from paceline.lab.lab_cluster import Lab, known_labs, lab_down, lab_named, lab_up
from paceline.lab.launches import lab_for_launch, lab_users
from paceline.lab.machine import missing_for_lab
from paceline.lab.settings import DEFAULT_NAME, LabSettings

__all__ = [
    "DEFAULT_NAME",
    "Lab",
    "LabSettings",
    "known_labs",
    "lab_down",
    "lab_for_launch",
    "lab_named",
    "lab_up",
    "lab_users",
    "missing_for_lab",
]
