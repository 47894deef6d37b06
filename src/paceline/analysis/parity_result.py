"""Result of the parity check, as recorded and shown by comparisons."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from paceline.errors import InputError


@dataclass(frozen=True)
class Parity:
    """Comparison of one framework with the reference; ``reason`` is empty if it passed.

    ``difference`` is the largest relative difference of a loss; NaN without losses.
    """

    framework: str
    parameters: int | None
    losses: tuple[float, ...]
    difference: float
    reason: str = ""


@dataclass(frozen=True)
class ParityTable:
    """Comparison of every framework with a reference: NumPy or, if too slow, the first framework.

    ``without_dropout`` means that the dropout of the network was removed.
    """

    model: str
    reference: str
    losses: tuple[float, ...]
    parameters: int
    rows: tuple[Parity, ...]
    without_dropout: bool = False

    @property
    def same(self) -> list[str]:
        """Frameworks that passed."""
        return [row.framework for row in self.rows if not row.reason]

    def check_some(self) -> None:
        if not self.same:
            reasons = "; ".join(f"{row.framework}: {row.reason}" for row in self.rows)
            raise InputError(
                f"no framework reproduces the reference training of {self.model}: {reasons}"
            )

    def to_json(self) -> dict[str, Any]:
        """Convert the table to JSON values, as saved in the design of a study."""
        rows = [
            {**asdict(row), "difference": row.difference if row.losses else None}
            for row in self.rows
        ]
        return {**asdict(self), "rows": rows}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "ParityTable":
        rows = tuple(
            Parity(
                **{
                    **row,
                    "losses": tuple(row["losses"]),
                    "difference": math.nan if row["difference"] is None else row["difference"],
                }
            )
            for row in document["rows"]
        )
        return cls(**{**document, "losses": tuple(document["losses"]), "rows": rows})
