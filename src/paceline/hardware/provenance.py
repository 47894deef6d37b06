"""Provenance of a number, and the error for unknown numbers."""

from dataclasses import dataclass
from enum import StrEnum

from paceline.errors import InputError


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

    source: str
    date: str
    confidence: Confidence

    def __str__(self) -> str:
        dated = f", {self.date}" if self.date else ""
        return f"{self.source}{dated} ({self.confidence})"


class UnknownQuantityError(InputError):
    """A required number is missing from the catalogue; the hint explains how to obtain it."""
