"""Settings that the documentation of a training program recommends for large models."""

from collections.abc import Mapping
from typing import Any

from paceline.hardware import Cluster
from paceline.predictor.framework_profiles import FrameworkProfile
from paceline.predictor.plan.interleaving import largest_interleave
from paceline.predictor.plan.plan_choices import ExpertDispatch
from paceline.workload.blocks import blocks
from paceline.workload.graph import Graph

DDP, FSDP, MEGATRON = "torch-ddp", "torch-fsdp", "megatron-lm"
"""Programs that default plans use."""


def recommended(
    profile: FrameworkProfile, graph: Graph, cluster: Cluster, given: Mapping[str, Any]
) -> dict[str, Any]:
    """The recommended options of a program; options in ``given`` take precedence."""
    tp, pp, cp = (given.get(name) or 1 for name in ("tp", "pp", "cp"))
    found: dict[str, Any] = {}
    if profile.usual_zero and cluster.devices > tp * pp:
        found["zero"] = profile.usual_zero
    if profile.usual_recompute:
        found["recompute"] = profile.usual_recompute
    usual = profile.sequence_parallel or profile.usual_sequence_parallel
    sequence = given.get("sequence_parallel", usual)
    if profile.usual_tp_overlap and tp > 1 and sequence:
        found["tp_overlap"] = True
    if profile.usual_ep_impl is not ExpertDispatch.ALL_TO_ALL and (given.get("ep") or 1) > 1:
        found["ep_impl"] = str(profile.usual_ep_impl)
    if profile.interleaves and pp > 1 and not given.get("stage_layers"):
        replicas = given.get("dp") or max(1, cluster.devices // (tp * pp * cp))
        chunks = largest_interleave(len(blocks(graph)), pp)
        plain = given.get("pipeline") in (None, "1f1b")
        if chunks > 1 and plain and micro_batches(given, replicas) % pp == 0:
            found["interleave"] = chunks
    return found


def micro_batches(given: Mapping[str, Any], replicas: int) -> int:
    """Micro-batches per step of a pipeline; 1 if the batch is not stated."""
    if given.get("micro_batches"):
        return int(given["micro_batches"])
    total = given.get("global_batch")
    batch = int(total) // replicas if total else int(given.get("batch") or 1)
    return max(1, batch // int(given.get("micro_batch") or 1))
