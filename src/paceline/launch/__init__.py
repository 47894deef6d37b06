"""Launchers: start, watch and end the ranks of a launch."""

from paceline.launch.launcher import (
    Detection,
    Launcher,
    LaunchExit,
    LaunchHost,
    LaunchRequest,
    LaunchSettings,
    RankEvent,
    RankExit,
)
from paceline.launch.launcher_registry import DEFAULT_LAUNCHER, launcher, launchers
from paceline.launch.local import LocalLauncher

__all__ = [
    "DEFAULT_LAUNCHER",
    "Detection",
    "LaunchExit",
    "LaunchHost",
    "LaunchRequest",
    "LaunchSettings",
    "Launcher",
    "LocalLauncher",
    "RankEvent",
    "RankExit",
    "launcher",
    "launchers",
]
