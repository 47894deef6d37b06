"""Studies of one store, chosen when the explorer starts: never a path that a browser names."""

from collections.abc import Sequence
from pathlib import Path

from paceline.analyse.groups import LaunchGroup, grouped
from paceline.store import Launch, Store

MOST_LAUNCHES = 2000
"""Launches of a study that its page shows."""


class MeasuredStudies:
    """What was measured: names of studies, and the launches of one; nothing without a store."""

    def __init__(self, path: Path | None) -> None:
        self._path = path if path is not None and path.exists() else None

    def names(self) -> list[str]:
        """Studies of the store, by name."""
        if self._path is None:
            return []
        with Store(self._path) as store:
            return sorted(store.studies())

    def launches(self, name: str) -> list[Launch]:
        """Launches of a study, in the order in which they began."""
        if self._path is None or name not in self.names():
            return []
        with Store(self._path) as store:
            return store.study(name)[:MOST_LAUNCHES]

    def plain(self, name: str) -> Sequence[LaunchGroup]:
        """Configurations that count as throughput, to be drawn over predictions."""
        return [
            group
            for group in grouped(self.launches(name))
            if group.first.instrument == "none"
            and (group.first.synchronised or group.first.world_size == 1)
        ]
