"""Where a number comes from, and what to say when there is none."""

from dataclasses import dataclass
from enum import StrEnum

from paceline.errors import InputError


class Confidence(StrEnum):
    """How far a number can be trusted."""

    MEASURED = "measured"
    """Measured by the tool or by its user."""
    READ = "read"
    """Read in the source that is named."""
    DERIVED = "derived"
    """Computed from a number that was read, or read of a sister product."""
    UNVERIFIED = "unverified"
    """Recalled from the vendor's data sheet that is named, not looked up."""
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
    """A number that the catalogue does not have was asked for; the hint says how to get it."""
