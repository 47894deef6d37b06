"""Base class of sweeps."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from paceline.errors import InputError
from paceline.hardware import Cluster
from paceline.predictor.comm.compression import NO_COMPRESSION
from paceline.predictor.evidence import Evidence
from paceline.predictor.framework_profiles import framework as find_framework
from paceline.predictor.kernels.copy_and_update import whole_update_seconds
from paceline.predictor.kernels.efficiency import Efficiency
from paceline.predictor.kernels.layer_arrays import Array
from paceline.predictor.partition.partition import Partition, partition
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.plan_choices import Recompute
from paceline.predictor.predict import DEFAULT_FRAMEWORK, predict
from paceline.predictor.prediction import Prediction
from paceline.predictor.prediction_inputs import PredictionInputs
from paceline.predictor.schedule.step_costs import StepCosts
from paceline.predictor.schedule.timeline import step_costs
from paceline.predictor.sweep.sweep_axes import base_values
from paceline.predictor.uncertainty.applied_corrections import apply_corrections
from paceline.predictor.uncertainty.step_corrections import StepCorrections, cluster_corrections
from paceline.workload.workload import Workload


@dataclass(frozen=True)
class Sweep:
    """A workload on a kind of cluster, evaluated over the five axes.

    ``plan`` gives synchronisation and framework; its degrees are not used. ``corrections`` are
    fitted to published measurements; None for those of the cluster alone. The other
    fields are those of `paceline.predictor.predict`.
    """

    workload: Workload
    cluster: Cluster
    plan: Plan = field(default_factory=Plan)
    efficiency: Efficiency | None = None
    input_seconds: float = 0.0
    jitter: float | None = None
    corrections: StepCorrections | None = None

    def __post_init__(self) -> None:
        plan = self.plan
        absent = {
            "recomputation": plan.recompute is not Recompute.NONE,
            "offloading": bool(plan.offload),
            "compression": plan.compression != NO_COMPRESSION,
            "several micro-batches": plan.batches(self.workload.batch)[1] > 1,
            "quantised weights": self.workload.frozen_bytes is not None,
        }
        if missing := [name for name, is_asked in absent.items() if is_asked]:
            raise InputError(
                f"sweep does not support {missing[0]}", "use 'paceline predict' for each point"
            )

    @property
    def base(self) -> dict[str, float]:
        """The values of workload and cluster, by names of `AXES`."""
        return base_values(self.workload, self.cluster)

    @cached_property
    def job(self) -> PredictionInputs:
        """The job of a single worker, which does not change along the axes."""
        plan = replace(self.plan, dp=1, tp=1, pp=1, cp=1, ep=1, micro_batch=None)
        return PredictionInputs(
            self.workload,
            self.cluster.shaped(1, 1),
            plan,
            find_framework(plan.framework or DEFAULT_FRAMEWORK),
            self.efficiency,
            Evidence(spread=self.jitter),
            self.corrections or cluster_corrections(self.cluster.name),
            input_seconds=self.input_seconds,
        )

    @cached_property
    def parts(self) -> Partition:
        """The undivided network."""
        job = self.job
        return partition(job.workload, job.cluster, job.plan, job.framework)

    def costs(self, corrections: StepCorrections) -> StepCosts:
        """Costs of a single worker besides layers and messages."""
        return step_costs(self.job, self.parts, apply_corrections(self.job, corrections))

    def predicted(self, batch: int, cluster: Cluster, plan: Plan) -> Prediction:
        """The scheduler's prediction with the same settings and corrections."""
        return predict(
            self.workload.with_batch(batch),
            cluster,
            plan,
            efficiency=self.efficiency,
            input_seconds=self.input_seconds,
            evidence=Evidence(spread=self.jitter),
            corrections=self.job.corrections,
        )

    def update_seconds(self, parameters: Array | float, memory: Array) -> Array:
        """Seconds of the update of ``parameters`` at memory bandwidths ``memory``."""
        if not np.any(parameters):
            return np.zeros_like(memory)
        return np.asarray(whole_update_seconds(self.parts, parameters, self.efficiency, memory))
