"""Studies of the store that the explorer was started with; a browser cannot name a path."""

from collections.abc import Sequence
from pathlib import Path

from paceline.analysis.configurations import LaunchGroup, grouped
from paceline.store import Launch, Store

MOST_LAUNCHES = 2000
"""Limit of launches on the page of a study."""


class MeasuredStudies:
    """Names of studies and their launches; empty without a store."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def names(self) -> list[str]:
        """Studies of the store, by name."""
        if self._path is None or not self._path.exists():
            return []
        with Store(self._path, create=False) as store:
            return sorted(store.studies())

    def launches(self, name: str) -> list[Launch]:
        """Launches of a study in order of start."""
        if self._path is None or name not in self.names():
            return []
        with Store(self._path, create=False) as store:
            return store.study(name)[:MOST_LAUNCHES]

    def plain(self, name: str) -> Sequence[LaunchGroup]:
        """Plain configurations, to be drawn over predictions."""
        return [
            group
            for group in grouped(self.launches(name))
            if group.first.instrument == "none"
            and (group.first.synchronised or group.first.world_size == 1)
        ]
