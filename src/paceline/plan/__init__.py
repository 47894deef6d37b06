"""How a workload is spread: degrees of parallelism, synchronisation, pipelines, memory."""

from paceline.plan.choices import PipelineSchedule, Recompute
from paceline.plan.compression import Compression, CompressionKind
from paceline.plan.memory import Memory
from paceline.plan.plan import Plan, plan_for
from paceline.plan.synchronisation import Exchange, Policy, Synchronisation, synchronisation

__all__ = [
    "Compression",
    "CompressionKind",
    "Exchange",
    "Memory",
    "PipelineSchedule",
    "Plan",
    "Policy",
    "Recompute",
    "Synchronisation",
    "plan_for",
    "synchronisation",
]
