"""Predictions of several jobs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, overload

from paceline.predictor.prediction import Prediction
from paceline.render.result import Part, PublicResult


@dataclass(frozen=True, repr=False)
class Predictions(PublicResult, Sequence[Prediction]):
    """One prediction for each combination of listed options; prints as a table."""

    schema: ClassVar[str] = "prediction/2"
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

    def parts(self) -> list[Part]:
        """One row per prediction, and the notes of all."""
        from paceline.predictor.prediction_tables import prediction_parts

        return list(prediction_parts(self.items))

    def summary(self) -> str:
        """The number of predictions."""
        return f"{len(self.items)} predictions"

    def to_dict(self) -> dict[str, Any]:
        """The predictions as in ``paceline predict --json``."""
        return {"predictions": [one.to_dict() for one in self.items]}
