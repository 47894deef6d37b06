"""Launchers: how the ranks of a launch are started, watched and ended."""

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
from paceline.launch.local import LocalLauncher
from paceline.launch.registry import DEFAULT_LAUNCHER, launcher, launchers

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
