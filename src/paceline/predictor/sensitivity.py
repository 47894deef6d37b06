"""Sensitivity of predictions to a constant, on standard cases."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from paceline.constants import number, overridden
from paceline.hardware import catalogue
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.plan_choices import Recompute
from paceline.predictor.predict import predict
from paceline.workload.workload import Workload

DEFAULT_FACTOR = 1.1


@dataclass(frozen=True)
class StandardCase:
    """A job for sensitivity analysis; ``batch`` is per replica.

    ``plan`` are further arguments of `Plan`.
    """

    model: str
    batch: int
    cluster: str
    nodes: int
    devices_per_node: int
    framework: str
    precision: str = "fp32"
    sequence: int | None = None
    plan: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The case in one line."""
        return (
            f"{self.model} {self.precision}, {self.cluster} {self.nodes}x{self.devices_per_node}, "
            f"{self.framework}"
        )

    def step_seconds(self) -> float:
        """Seconds of its step with the current constants."""
        optimizer = "adam" if self.sequence else "sgd_momentum"
        workload = Workload.of(self.model, self.batch, self.sequence, self.precision, optimizer)
        cluster = catalogue.cluster(self.cluster).shaped(self.nodes, self.devices_per_node)
        replicas = cluster.devices // Plan(**self.plan).devices
        plan = Plan(dp=replicas, framework=self.framework, **self.plan)
        return predict(workload, cluster, plan).step_seconds


STANDARD_CASES = (
    StandardCase("resnet50", 64, "dgx-1", 4, 8, "torch-ddp"),
    StandardCase("bert_large", 8, "hkbu-v100-pcie", 8, 4, "torch-ddp", sequence=128),
    StandardCase(
        *("gpt3_175b", 64, "dgx-a100", 8, 8, "megatron-lm"),
        precision="fp16",
        sequence=2048,
        plan={
            "tp": 8,
            "pp": 8,
            "interleave": 3,
            "micro_batch": 1,
            "sequence_parallel": True,
            "recompute": Recompute.SELECTIVE,
            "fused_attention": False,
        },
    ),
    StandardCase("gpt2", 4, "dgx-h100", 2, 8, "torch-fsdp", "bf16", 1024),
    StandardCase("mobilenet_v2", 32, "hkbu-v100-pcie", 4, 4, "lbann"),
    StandardCase("googlenet", 64, "hkbu-k80", 8, 1, "wfbp"),
    StandardCase("resnet44", 64, "xeon-edr", 4, 1, "torch-ddp"),
    StandardCase("resnet50", 32, "xeon-edr", 8, 1, "pydtnn"),
)
"""Vision and language, one and several nodes, each kind of device, each family of library."""


@dataclass(frozen=True)
class Movement:
    """Seconds per step of a standard case, before and after a change of a constant."""

    case: StandardCase
    step_seconds: float
    changed_seconds: float

    @property
    def relative_change(self) -> float:
        """Change of the step over the step."""
        return self.changed_seconds / self.step_seconds - 1.0


def movements(name: str, factor: float = DEFAULT_FACTOR) -> list[Movement]:
    """Change of each standard case when the constant ``name`` is multiplied by ``factor``."""
    usual = [case.step_seconds() for case in STANDARD_CASES]
    with overridden({name: factor * number(name)}):
        return [
            Movement(case, before, case.step_seconds())
            for case, before in zip(STANDARD_CASES, usual, strict=True)
        ]
