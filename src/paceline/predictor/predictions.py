"""Predictions of several jobs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

from paceline.predictor.prediction import Prediction


@dataclass(frozen=True, repr=False)
class Predictions(Sequence[Prediction]):
    """One prediction for each combination of listed options; prints as a table."""

    items: tuple[Prediction, ...]

    @overload
    def __getitem__(self, index: int) -> Prediction: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Prediction, ...]: ...

    def __getitem__(self, index: int | slice) -> Prediction | tuple[Prediction, ...]:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Prediction]:
        return iter(self.items)

    def to_dict(self) -> list[dict[str, Any]]:
        """The predictions as in ``paceline predict --json``."""
        from paceline.predictor.prediction_json import prediction_json

        return [prediction_json(one) for one in self.items]

    def __str__(self) -> str:
        from paceline.predictor.prediction_tables import prediction_parts

        return "\n".join(map(str, prediction_parts(self.items)))

    __repr__ = __str__
