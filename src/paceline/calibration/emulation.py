"""Emulated devices: workers sleep for the predicted time of each layer."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from paceline.errors import InputError
from paceline.hardware import Cluster, Device
from paceline.measurement.job import Job
from paceline.predictor.plan.plan import Plan
from paceline.predictor.predict import prepare, schedule_job
from paceline.predictor.schedule.device_times import named_layers
from paceline.predictor.schedule.step_costs import LayerTime
from paceline.units import format_seconds
from paceline.workload.workload import Workload

EMULATING = ("torch-ddp", "torch-fsdp", "horovod-torch")
"""Frameworks whose workers can emulate layers by sleeping."""
SHORTEST_STEP_SECONDS = 0.02
"""Sleeps end about 0.1 ms late, so shorter steps have errors above one or two percent."""
LONGEST_STEP_SECONDS = 600.0


Exchanges = tuple[tuple[tuple[str, float], ...], tuple[tuple[str, float], ...]]
"""Operations and bytes after the forward and after the backward of a layer."""


@dataclass(frozen=True)
class EmulatedDevice:
    """The emulated step of one device: seconds by layer, and of the update.

    All times are ``time_scale`` times those of the device ``name``. ``exchanges`` are operations
    and bytes that the devices of a replica exchange after forward and backward of a layer.
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
        """The device slowed down by ``factor``, for equally slower links."""
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
        """Raise for a step that sleeping cannot emulate accurately."""
        step = self.step_seconds
        if not SHORTEST_STEP_SECONDS <= step <= LONGEST_STEP_SECONDS:
            wanted = SHORTEST_STEP_SECONDS if step < SHORTEST_STEP_SECONDS else LONGEST_STEP_SECONDS
            raise InputError(
                f"an emulated step must take {format_seconds(SHORTEST_STEP_SECONDS)} to "
                f"{format_seconds(LONGEST_STEP_SECONDS)} ({self.name}: {format_seconds(step)})",
                f"use --time-scale {1.2 * wanted * self.time_scale / max(step, 1e-9):.2g} and an "
                "equally slower link",
            )

    def for_job(self) -> dict[str, Any]:
        return {
            "device": self.name,
            "time_scale": self.time_scale,
            "layers": {x.name: [x.forward_seconds, x.backward_seconds] for x in self.layers},
            "update_seconds": self.update_seconds,
            "exchanges": dict(self.exchanges),
        }

    @classmethod
    def of_job(cls, job: Mapping[str, Any]) -> "EmulatedDevice":
        device = job["emulated"]
        layers = tuple(LayerTime(name, *times) for name, times in device["layers"].items())
        times = (device["update_seconds"], device["time_scale"])
        return cls(device["device"], layers, *times, device.get("exchanges", {}))


def emulated_device(device: Device, workload: Workload, framework: str) -> EmulatedDevice:
    """A device of the catalogue, each layer as long as predicted for it alone."""
    plan = Plan(framework=framework)
    cluster = Cluster(device.name, device, 1)
    alone = schedule_job(prepare(workload, cluster, plan))
    layers = tuple(named_layers(alone.step.parts, alone.times))
    work = sum(layer.forward_seconds + layer.backward_seconds for layer in layers)
    return EmulatedDevice(device.name, layers, max(0.0, alone.seconds - work))


def emulated_job(job: Job, device: EmulatedDevice) -> Job:
    """A job that sleeps instead of computing; raises if the emulation would be inaccurate."""
    if job.framework not in EMULATING:
        raise InputError(
            f"{job.framework} does not support emulated devices", f"use {', '.join(EMULATING)}"
        )
    device.check()
    return replace(job, emulated=device.for_job())
