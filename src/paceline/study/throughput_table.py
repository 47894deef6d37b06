"""Throughput of each configuration of a study, printed as a table."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

from paceline.analysis.configurations import LaunchGroup
from paceline.analysis.launch_tables import throughput_table
from paceline.render.table import Table


@dataclass(frozen=True, repr=False)
class Throughput(Sequence[LaunchGroup]):
    """Groups of launches, one per configuration; ``[i].throughput.mean`` is in samples/s."""

    groups: tuple[LaunchGroup, ...]

    @overload
    def __getitem__(self, index: int) -> LaunchGroup: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[LaunchGroup, ...]: ...

    def __getitem__(self, index: int | slice) -> LaunchGroup | tuple[LaunchGroup, ...]:
        return self.groups[index]

    def __len__(self) -> int:
        return len(self.groups)

    @property
    def table(self) -> Table:
        """Throughput and step time of each configuration, with intervals."""
        return throughput_table(self.groups)

    def __str__(self) -> str:
        return str(self.table)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.table._repr_html_()
