"""Predictions for emulated devices in a lab, for the benchmarks of labs."""

from collections.abc import Sequence

from paceline.calibration.emulation import EmulatedDevice
from paceline.hardware import Cluster, Device
from paceline.hardware.link import Link
from paceline.predictor.evidence import Evidence
from paceline.predictor.partition.sharding import ShardMessage
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.sync_policy import Synchronisation
from paceline.predictor.predict import DEFAULT_FRAMEWORK, predict, prepare, schedule_job
from paceline.predictor.prediction import Prediction
from paceline.predictor.schedule.device_times import named_layers
from paceline.predictor.schedule.step_costs import CollectiveSeconds, LayerTime
from paceline.predictor.uncertainty.step_corrections import NO_CORRECTIONS, StepCorrections
from paceline.workload.graph import Graph
from paceline.workload.workload import Workload


def emulated_shard(device: Device, workload: Workload, ranks: int) -> EmulatedDevice:
    """One of ``ranks`` devices that divide every layer of a replica (model parallelism)."""
    wire = Link("any link", "inter", 1e9, transport="tcp")
    cluster = Cluster(device.name, device, 1, ranks, inter=wire)
    shard = schedule_job(prepare(workload, cluster, Plan(tp=ranks), corrections=NO_CORRECTIONS))
    layers = tuple(
        LayerTime(x.name, x.forward_seconds, x.backward_seconds, x.gradient_bytes)
        for x in named_layers(shard.step.parts, shard.times)
    )

    def sizes(messages: Sequence[ShardMessage]) -> tuple[tuple[str, float], ...]:
        return tuple((one.operation, float(one.size.at(workload.batch))) for one in messages)

    exchanges = {
        part.profile.name: (sizes(part.tensor_forward), sizes(part.tensor_backward))
        for part in shard.step.parts.layers
        if part.tensor_forward or part.tensor_backward
    }
    return EmulatedDevice(device.name, layers, shard.updates[0], exchanges=exchanges)


def predict_emulated(
    graph: Graph,
    device: EmulatedDevice,
    ranks: int,
    all_reduce: CollectiveSeconds,
    *,
    link: float,
    framework: str = DEFAULT_FRAMEWORK,
    bucket_bytes: float | None = None,
    source: str = "",
) -> Prediction:
    """The step of ``ranks`` emulated devices, one on each host of a lab.

    Layer times are those of the emulation, message times those of the curve ``all_reduce``
    measured with as many ranks. ``link`` is in bytes per second.
    """
    wire = Link("lab link", "inter", link, technology="ethernet", transport="tcp")
    asleep = Device(f"emulated {device.name}", "", "cpu", {})
    cluster = Cluster(f"lab of {asleep.name}", asleep, 1, ranks, inter=wire)
    buckets = None if bucket_bytes is None else Synchronisation().with_bucket(bucket_bytes)
    return predict(
        Workload(graph, 1),
        cluster,
        Plan(dp=ranks, framework=framework, synchronisation=buckets),
        evidence=Evidence(
            alone_seconds=device.step_seconds,
            layers=device.layers,
            update_seconds=device.update_seconds,
            all_reduce={ranks: all_reduce},
            source=source or "emulated layer times, and all-reduce measured in the lab",
        ),
        # A sleeping device is not slowed down by messages.
        corrections=StepCorrections(unhidden_share=0.0),
    )
