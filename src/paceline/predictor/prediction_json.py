"""A prediction as JSON values: units in the names, nothing rounded."""

from dataclasses import fields
from enum import StrEnum
from typing import Any

from paceline.constants import number
from paceline.predictor.comm.compression import Compression
from paceline.predictor.plan.sync_policy import Synchronisation
from paceline.predictor.prediction import Prediction
from paceline.predictor.prediction_text import losses_seconds

_OLD_PARTS = {"optimizer": "optimiser"}
"""Keys of ``memory_bytes`` since version 1, which scripts read."""


def prediction_json(prediction: Prediction) -> dict[str, Any]:
    """The JSON of `paceline predict --json` for one topology."""
    workload, cluster, plan = prediction.workload, prediction.cluster, prediction.plan
    low, high = prediction.step_interval_seconds
    slow, fast = prediction.samples_per_second_interval
    memory = prediction.memory
    return {
        "model": workload.graph.name,
        "batch_per_replica": workload.batch,
        "global_batch": prediction.samples_per_step,
        "sequence": workload.sequence,
        "precision": workload.precision,
        "optimizer": workload.optimizer,
        "optimiser": workload.optimizer,
        "cluster": cluster.name,
        "link": None if cluster.inter is None else cluster.inter.name,
        "nics": cluster.nics_per_node,
        "device": cluster.device.name,
        "nodes": cluster.nodes,
        "devices_per_node": cluster.devices_per_node,
        "devices": prediction.devices,
        "framework": prediction.framework,
        "plan": _plan_json(prediction),
        "step_seconds": prediction.step_seconds,
        "step_seconds_interval_90": [low, high],
        "samples_per_second": prediction.samples_per_second,
        "samples_per_second_interval_90": [slow, fast],
        "tokens_per_second": prediction.tokens_per_second,
        "perfect_samples_per_second": prediction.perfect_samples_per_second,
        "efficiency": prediction.efficiency,
        "model_flops_utilisation": prediction.utilisation,
        "executed_flops_share": prediction.executed_share,
        "ideal_seconds": prediction.ideal_seconds,
        "sharing_seconds": prediction.sharing_seconds,
        "waiting_seconds": prediction.waiting_seconds,
        "compute_seconds": prediction.compute_seconds,
        "exposed_communication_seconds": prediction.exposed_communication_seconds,
        "hidden_communication_seconds": prediction.breakdown.hidden_communication_seconds,
        "phase_seconds": {str(p): s for p, s in prediction.breakdown.exposed.items()},
        "loss_seconds": losses_seconds(prediction),
        "memory_bytes": {
            _OLD_PARTS.get(name, name): float(size) for name, size in memory.parts().items()
        },
        "memory_total_bytes": float(memory.total_bytes),
        "stage_memory_total_bytes": [float(own.total_bytes) for own in prediction.stage_memories],
        "device_memory_bytes": prediction.device_memory_bytes,
        "fits": prediction.fits,
        "fits_probability": prediction.fits_probability,
        "fits_with": _fitting_change(prediction),
        "reserved_memory_bytes": _reserved_bytes(prediction),
        "price_per_million_samples": prediction.price_per_million_samples,
        "bound_by": prediction.bound_by,
        "notes": list(prediction.notes),
        "degrees": {"dp": plan.dp, "tp": plan.tp, "pp": plan.pp, "cp": plan.cp, "ep": plan.ep},
    }


def _fitting_change(prediction: Prediction) -> dict[str, Any] | None:
    """Options with which the job fits, if it does not and a change is known."""
    change = prediction.nearest_fit
    if change is None:
        return None
    return {"options": change.options, "memory_total_bytes": change.memory_bytes}


def _reserved_bytes(prediction: Prediction) -> float | None:
    """Memory that is left for the CUDA context and the buffers of the communication library."""
    capacity = prediction.device_memory_bytes
    return None if capacity is None else capacity * number("spread.memory.reserved_share")


def _plan_json(prediction: Prediction) -> dict[str, Any]:
    """The fields of the plan by name, with the micro-batches that follow from the batch."""
    plan = prediction.plan
    micro_batch, micro_batches = plan.batches(prediction.workload.batch)
    stated = {each.name: _json_value(getattr(plan, each.name)) for each in fields(plan)}
    return {**stated, "micro_batch": micro_batch, "micro_batches": micro_batches}


def _json_value(value: Any) -> Any:
    if isinstance(value, Compression):
        return str(value.kind)
    if isinstance(value, Synchronisation):
        return str(value.policy)
    if isinstance(value, tuple):
        return [_json_value(each) for each in value]
    return str(value) if isinstance(value, StrEnum) else value
