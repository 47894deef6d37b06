"""Emulated devices: what each layer is slept for, what can be kept, what a step will take."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from paceline.errors import InputError
from paceline.hardware import Cluster, Device
from paceline.hardware.link import Link
from paceline.measurement.job import Job
from paceline.plan.plan import Plan
from paceline.plan.sharding import ShardMessage
from paceline.plan.synchronisation import Synchronisation
from paceline.predictor.evidence import Evidence
from paceline.predictor.predict import DEFAULT_FRAMEWORK, predict, prepare
from paceline.predictor.prediction import Prediction
from paceline.predictor.step_corrections import NO_CORRECTIONS, StepCorrections
from paceline.predictor.step_costs import CollectiveSeconds, LayerTime
from paceline.units import format_seconds
from paceline.workload.graph import Graph
from paceline.workload.workload import Workload

EMULATING = ("torch-ddp", "torch-fsdp", "horovod-torch")
"""Frameworks whose workers can sleep their layers."""
SHORTEST_STEP_SECONDS = 0.02
"""Sleeps end some 0.1 ms late: a shorter step cannot be kept within a percent or two."""
LONGEST_STEP_SECONDS = 600.0


Exchanges = tuple[tuple[tuple[str, float], ...], tuple[tuple[str, float], ...]]
"""Operations and bytes after the forward and after the backward of a layer."""


@dataclass(frozen=True)
class EmulatedDevice:
    """One device's step as ranks sleep it: seconds by layer, and of the update.

    All times are ``time_scale`` times those of the device that ``name`` tells. ``exchanges`` are
    operations and bytes that the devices of one replica exchange after forward and backward of a
    layer, by its name.
    """

    name: str
    layers: tuple[LayerTime, ...]
    update_seconds: float = 0.0
    time_scale: float = 1.0
    exchanges: Mapping[str, Exchanges] = field(default_factory=dict)

    @property
    def step_seconds(self) -> float:
        """The step of one device alone."""
        work = sum(x.forward_seconds + x.backward_seconds for x in self.layers)
        return float(work + self.update_seconds)

    def slower(self, factor: float) -> "EmulatedDevice":
        """The same device in slow motion, so that a slower link is in proportion."""
        if not 0 < factor < float("inf"):
            raise InputError(f"a time scale of {factor:g} is impossible", "give one above zero")
        layers = tuple(
            replace(
                layer,
                forward_seconds=factor * layer.forward_seconds,
                backward_seconds=factor * layer.backward_seconds,
            )
            for layer in self.layers
        )
        scale = factor * self.time_scale
        update = factor * self.update_seconds
        return replace(self, layers=layers, update_seconds=update, time_scale=scale)

    def check(self) -> None:
        """Refuse a step that sleeping cannot keep."""
        step = self.step_seconds
        if not SHORTEST_STEP_SECONDS <= step <= LONGEST_STEP_SECONDS:
            wanted = SHORTEST_STEP_SECONDS if step < SHORTEST_STEP_SECONDS else LONGEST_STEP_SECONDS
            raise InputError(
                f"a step of {self.name} takes {format_seconds(step)}, which sleeping cannot keep: "
                f"{format_seconds(SHORTEST_STEP_SECONDS)} to "
                f"{format_seconds(LONGEST_STEP_SECONDS)} can be",
                f"--time-scale {1.2 * wanted * self.time_scale / max(step, 1e-9):.2g} "
                "stretches it; the link must be slower by as much",
            )

    def for_job(self) -> dict[str, Any]:
        """What a job tells its workers."""
        return {
            "device": self.name,
            "time_scale": self.time_scale,
            "layers": {x.name: [x.forward_seconds, x.backward_seconds] for x in self.layers},
            "update_seconds": self.update_seconds,
            "exchanges": dict(self.exchanges),
        }

    @classmethod
    def of_job(cls, job: Mapping[str, Any]) -> "EmulatedDevice":
        """The device of a job that was told of one."""
        told = job["emulated"]
        layers = tuple(LayerTime(name, *times) for name, times in told["layers"].items())
        exchanges = told.get("exchanges", {})
        return cls(told["device"], layers, told["update_seconds"], told["time_scale"], exchanges)


def emulated_device(device: Device, workload: Workload, framework: str) -> EmulatedDevice:
    """A device of the catalogue, each layer as long as predicted for it alone."""
    plan = Plan(framework=framework)
    cluster = Cluster(device.name, device, 1)
    alone = prepare(workload, cluster, plan)
    layers = tuple(alone.layers)
    work = sum(layer.forward_seconds + layer.backward_seconds for layer in layers)
    return EmulatedDevice(device.name, layers, max(0.0, alone.seconds() - work))


def emulated_shard(device: Device, workload: Workload, ranks: int) -> EmulatedDevice:
    """One of ``ranks`` devices that divide every layer of a replica (model parallelism)."""
    wire = Link("any link", "inter", 1e9, transport="tcp")
    cluster = Cluster(device.name, device, 1, ranks, inter=wire)
    shard = prepare(workload, cluster, Plan(tp=ranks), corrections=NO_CORRECTIONS)
    layers = tuple(
        LayerTime(x.name, x.forward_seconds, x.backward_seconds, x.gradient_bytes)
        for x in shard.layers
    )

    def sizes(messages: Sequence[ShardMessage]) -> tuple[tuple[str, float], ...]:
        return tuple((one.operation, float(one.size.at(workload.batch))) for one in messages)

    exchanges = {
        part.profile.name: (sizes(part.tensor_forward), sizes(part.tensor_backward))
        for part in shard.replica.parts
        if part.tensor_forward or part.tensor_backward
    }
    return EmulatedDevice(device.name, layers, shard.updates[0], exchanges=exchanges)


def emulated_job(job: Job, device: EmulatedDevice) -> Job:
    """A job that sleeps in place of computing; what cannot be trusted is refused."""
    if job.framework not in EMULATING:
        raise InputError(
            f"{job.framework} cannot run on an emulated device", f"{', '.join(EMULATING)} can"
        )
    device.check()
    return replace(job, emulated=device.for_job())


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

    Layers are known since they are slept, messages by the curve ``all_reduce`` that was measured
    among as many ranks; a sleeping device is not slowed down by messages. ``link`` is bytes per
    second.
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
            source=source or "times that are slept, and all-reduce measured in the lab",
        ),
        corrections=StepCorrections(unhidden_share=0.0),
    )
