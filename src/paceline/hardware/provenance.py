"""Provenance of a number, and the error for unknown numbers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, ClassVar

from paceline.errors import InputError
from paceline.file_keys import NOT_IN_FILE, Key


class Confidence(StrEnum):
    """Confidence in a number."""

    MEASURED = "measured"
    """Measured by Paceline or by the user."""
    READ = "read"
    """Read in the named source."""
    DERIVED = "derived"
    """Computed from a number that was read, or taken from a sibling product."""
    UNVERIFIED = "unverified"
    """Recalled from the named data sheet, not looked up."""
    USER = "user"
    """Stated in a user's own file."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """Source of one number: text, date of the source (or of reading it) and confidence."""

    source: Annotated[str, Key(key="text")] = ""
    date: str = ""
    confidence: Confidence = Confidence.USER

    def __str__(self) -> str:
        dated = f", {self.date}" if self.date else ""
        return f"{self.source}{dated} ({self.confidence})"


class UnknownQuantityError(InputError):
    """A required number is missing from the catalogue; the hint explains how to obtain it."""


@dataclass(frozen=True, kw_only=True)
class SourcedEntry:
    """Keys that devices, links and clusters have in common.

    ``source`` names the source of all numbers except those that ``sources`` lists;
    ``provenance`` is the result for each key.
    """

    KEY_HINTS: ClassVar[Mapping[str, str]] = {"name": "the name is part of the header: [KIND.NAME]"}

    aliases: tuple[str, ...] = field(default=(), compare=False)
    source: str = field(default="your file", compare=False)
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict, compare=False)
    notes: str = ""
    provenance: Annotated[Mapping[str, Provenance], NOT_IN_FILE] = field(
        default_factory=dict, compare=False
    )
