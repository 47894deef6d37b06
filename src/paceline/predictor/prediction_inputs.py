"""The inputs of a prediction, and what the first three stages make of them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from paceline.hardware import Cluster
from paceline.predictor.evidence import NO_EVIDENCE, Evidence
from paceline.predictor.framework_profiles import FrameworkProfile
from paceline.predictor.kernels.efficiency import Efficiency
from paceline.predictor.plan.plan import Plan
from paceline.predictor.uncertainty.correction_model import FittedCorrections
from paceline.predictor.uncertainty.step_corrections import NO_CORRECTIONS, StepCorrections
from paceline.workload.workload import Workload

if TYPE_CHECKING:
    from paceline.predictor.comm.communication import Communication
    from paceline.predictor.kernels.layer_times import LayerTimes
    from paceline.predictor.partition.partition import Partition


@dataclass(frozen=True)
class PredictionInputs:
    """All inputs of a prediction.

    ``corrections`` are applied to the modelled step; ``fitted`` are those fitted to published
    measurements, with their variances, from which the interval is computed. ``input_seconds`` is
    the time to read and prepare a batch; it overlaps the step if the framework prefetches.
    ``scale`` multiplies all layer times and replaces the factors of evidence and corrections.
    """

    workload: Workload
    cluster: Cluster
    plan: Plan
    framework: FrameworkProfile
    efficiency: Efficiency | None = None
    evidence: Evidence = NO_EVIDENCE
    corrections: StepCorrections = NO_CORRECTIONS
    fitted: FittedCorrections | None = None
    input_seconds: float = 0.0
    scale: float | None = None


@dataclass(frozen=True, eq=False)
class ModelledStep:
    """A job after the stages that corrections do not change: `predict.model_step`.

    ``updates`` are the seconds of each pipeline stage's weight update.
    """

    job: PredictionInputs
    parts: "Partition"
    layers: "LayerTimes"
    communication: "Communication"
    updates: tuple[float, ...]
