"""Listing: entries of the catalogue as data and as tables."""

from dataclasses import dataclass
from typing import Any, ClassVar

from paceline.render.result import PublicResult
from paceline.render.table import Table


@dataclass(frozen=True, repr=False)
class Listing(PublicResult):
    """Entries of one ``kind``, such as devices, or one entry with the source of each number."""

    schema: ClassVar[str] = "catalog/1"
    kind: str
    entries: tuple[dict[str, Any], ...]
    printed: tuple[str | Table, ...]
    next_commands: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """Names of the entries; ids of published rows."""
        return [entry.get("name") or entry["id"] for entry in self.entries]

    def parts(self) -> tuple[str | Table, ...]:
        """A list, or the properties of one entry and their sources."""
        return self.printed

    def summary(self) -> str:
        """The number of entries and the first names."""
        more = ", ..." if len(self.entries) > 3 else ""
        return f"{len(self.entries)} {self.kind}: {', '.join(self.names[:3])}{more}"

    def to_dict(self) -> dict[str, Any]:
        """The entries; field names contain units."""
        return {"list": self.kind, "entries": list(self.entries)}
