"""How frameworks trained beside one reference: what a comparison of them keeps and shows."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from paceline.errors import InputError


@dataclass(frozen=True)
class Parity:
    """One framework beside the reference; ``reason`` is empty where it trains the same.

    ``difference`` is the largest relative difference of a loss; NaN where there is none.
    """

    framework: str
    parameters: int | None
    losses: tuple[float, ...]
    difference: float
    reason: str = ""


@dataclass(frozen=True)
class ParityTable:
    """Every framework beside one reference: NumPy's, or, where it cannot, the first framework.

    ``without_dropout`` says that the network was trained without the dropout it has.
    """

    model: str
    reference: str
    losses: tuple[float, ...]
    parameters: int
    rows: tuple[Parity, ...]
    without_dropout: bool = False

    @property
    def same(self) -> list[str]:
        """Frameworks that train the same."""
        return [row.framework for row in self.rows if not row.reason]

    def check_some(self) -> None:
        """Refuse to go on where no framework trains the same."""
        if not self.same:
            reasons = "; ".join(f"{row.framework}: {row.reason}" for row in self.rows)
            raise InputError(f"no framework trains {self.model} as described: {reasons}")

    def to_json(self) -> dict[str, Any]:
        """The table as JSON values, as the design of a study keeps it."""
        rows = [
            {**asdict(row), "difference": row.difference if row.losses else None}
            for row in self.rows
        ]
        return {**asdict(self), "rows": rows}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "ParityTable":
        """The table that `to_json` wrote."""
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
