"""What was made of a published study: predicted for its machines, and measured on this one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from paceline.analyse.parallel_ways import ParallelWays, parallel_ways
from paceline.analyse.published_studies import (
    MeasuredPart,
    PredictedCurves,
    Reproduction,
    SweptAxis,
)
from paceline.analyse.study_analysis import StudyAnalysis, analyse_launches
from paceline.places import Place
from paceline.predictor.prediction import Prediction
from paceline.predictor.sweeps import SweepComparison


@dataclass(frozen=True)
class PredictedLine:
    """One line of predicted curves: a prediction at each place."""

    label: str
    points: Sequence[tuple[Place, Prediction]]

    def speed_up(self, prediction: Prediction) -> float:
        """How many times the samples per second of the line's first place."""
        return prediction.samples_per_second / self.points[0][1].samples_per_second


@dataclass(frozen=True)
class MeasuredResult:
    """A part that was measured here, as far as it ran.

    ``missing`` are frameworks that are not installed, with the command that installs each;
    ``reason`` says why nothing of the part could run. Without launches ``analysis`` is None.
    """

    part: MeasuredPart
    study: str
    analysis: StudyAnalysis | None = None
    missing: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""

    @cached_property
    def explained(self) -> list[StudyAnalysis]:
        """Analyses to explain one by one: of each network, where the part is by model."""
        whole = self.analysis
        if whole is None or self.part.by != "model":
            return [] if whole is None else [whole]
        models = dict.fromkeys(launch.model for launch in whole.launches)
        return [
            analyse_launches(
                whole.study,
                [launch for launch in whole.launches if launch.model == model],
                whole.profile,
                whole.design,
            )
            for model in models
        ]

    @cached_property
    def ways(self) -> tuple[ParallelWays, ...]:
        """Data and tensor parallelism side by side, where the part compares them."""
        if self.analysis is None or not self.part.ways:
            return ()
        return parallel_ways(self.analysis.launches, self.analysis.profile)


@dataclass(frozen=True)
class StudyResults:
    """All of one study: published, predicted and measured."""

    reproduction: Reproduction
    curves: Sequence[tuple[PredictedCurves, Sequence[PredictedLine]]] = ()
    sweeps: Sequence[tuple[SweptAxis, SweepComparison]] = ()
    measured: Sequence[MeasuredResult] = ()
