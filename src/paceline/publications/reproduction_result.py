"""Results of a published study: predicted for its machines, and measured on this one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from paceline.predictor.prediction import Prediction
from paceline.predictor.sweep import SweepComparison
from paceline.publications.dp_vs_tp import DpVsTp, compare_dp_tp
from paceline.publications.publication import MeasuredPart, PredictedCurves, Reproduction, SweptAxis
from paceline.report.study_analysis import StudyAnalysis, analyse_launches
from paceline.topology import Topology


@dataclass(frozen=True)
class PredictedLine:
    """One line of predicted curves: a prediction for each topology."""

    label: str
    points: Sequence[tuple[Topology, Prediction]]

    def speed_up(self, prediction: Prediction) -> float:
        """Speed-up over the first topology of the line."""
        return prediction.samples_per_second / self.points[0][1].samples_per_second


@dataclass(frozen=True)
class MeasuredResult:
    """A part that was measured here, as far as it ran.

    ``missing`` are frameworks that are not installed, with the command that installs each;
    ``reason`` is set if the part could not run. Without launches ``analysis`` is None.
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
    def dp_vs_tp(self) -> tuple[DpVsTp, ...]:
        """Data against tensor parallelism, if the part compares them."""
        if self.analysis is None or not self.part.dp_vs_tp:
            return ()
        return compare_dp_tp(self.analysis.launches, self.analysis.profile)


@dataclass(frozen=True)
class ReproductionResult:
    """Published, predicted and measured results of one study."""

    reproduction: Reproduction
    curves: Sequence[tuple[PredictedCurves, Sequence[PredictedLine]]] = ()
    sweeps: Sequence[tuple[SweptAxis, SweepComparison]] = ()
    measured: Sequence[MeasuredResult] = ()
