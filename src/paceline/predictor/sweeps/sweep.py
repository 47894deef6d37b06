"""What the sweeps of all ways of spreading a workload have in common."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from paceline.hardware import Cluster
from paceline.plan.plan import Plan
from paceline.predictor.around_layers import update_traffic_bytes
from paceline.predictor.compute import update_seconds
from paceline.predictor.efficiency import Efficiency
from paceline.predictor.evidence import Evidence
from paceline.predictor.frameworks import framework as find_framework
from paceline.predictor.layer_arrays import Array
from paceline.predictor.predict import DEFAULT_FRAMEWORK, predict
from paceline.predictor.prediction import Prediction
from paceline.predictor.prepared import PreparedStep
from paceline.predictor.replica import Replica
from paceline.predictor.step_corrections import StepCorrections, cluster_corrections
from paceline.predictor.sweeps.axes import base_values
from paceline.workload.precision import precision
from paceline.workload.workload import Workload


@dataclass(frozen=True)
class Sweep:
    """A workload on a kind of cluster, anywhere on the five axes.

    ``plan`` gives synchronisation and framework; its degrees are not used. ``corrections`` are
    what published measurements teach of the job, None for those of the cluster alone. The other
    fields are those of `paceline.predictor.predict`.
    """

    workload: Workload
    cluster: Cluster
    plan: Plan = field(default_factory=Plan)
    efficiency: Efficiency | None = None
    input_seconds: float = 0.0
    jitter: float | None = None
    corrections: StepCorrections | None = None

    @property
    def base(self) -> dict[str, float]:
        """Where workload and cluster lie, by names of `AXES`."""
        return base_values(self.workload, self.cluster)

    @cached_property
    def case(self) -> PreparedStep:
        """A single worker: what does not change along the axes."""
        plan = replace(self.plan, dp=1, tp=1, pp=1, cp=1, ep=1, micro_batch=None)
        profile = find_framework(plan.framework or DEFAULT_FRAMEWORK)
        alone = self.cluster.shaped(1, 1)
        replica = Replica(self.workload, alone, plan, profile, self.efficiency)
        evidence = Evidence(spread=self.jitter)
        return PreparedStep(replica, evidence, self.corrections, self.input_seconds)

    def predicted(self, batch: int, cluster: Cluster, plan: Plan) -> Prediction:
        """The scheduler's prediction with the same settings and corrections."""
        return predict(
            self.workload.with_batch(batch),
            cluster,
            plan,
            efficiency=self.efficiency,
            input_seconds=self.input_seconds,
            evidence=Evidence(spread=self.jitter),
            corrections=self.corrections or cluster_corrections(cluster.name),
        )

    def update_seconds(self, parameters: Array | float, memory: Array) -> Array:
        """The optimiser's update of so many parameters on devices of such memory bandwidths."""
        if not np.any(parameters):
            return np.zeros_like(memory)
        moved = update_traffic_bytes(
            self.workload.optimiser,
            precision(self.workload.precision),
            self.plan.optimiser_state,
        )
        device = self.cluster.device
        return np.asarray(
            update_seconds(parameters, moved, device, self.efficiency, bytes_per_second=memory)
        )
