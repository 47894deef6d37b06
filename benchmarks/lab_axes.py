"""Five axes of data parallelism, measured in a lab and predicted, and its crossover with model
parallelism.

A small AlexNet (32 x 32 images, most weights in its linear layers) on emulated accelerators, a
hundredth of a V100 each, one on each host of a lab with shaped links. Layers sleep for the time of
the device model; messages are those of PyTorch over Gloo. One axis at a time is varied: batch per
host, arithmetic and memory bandwidth of the device, bandwidth of the link, hosts. Each step is
predicted before it runs, from the layer times and an all-reduce curve measured in such a lab. Then
the same batches are trained with model parallelism (each host has a part of every layer;
activations are gathered forward, gradients scattered backward), and the crossover batch is compared
with the predicted one.

Writes one figure of the axes and one of the crossover (SVG). Needs root and an otherwise idle
machine; load and variation are printed.
"""

import math
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from common import arguments, finish, machine
from emulated_lab import emulated_shard, predict_emulated

from lab_accuracy import curve, row, show
from paceline.calibration.emulation import (
    EmulatedDevice,
    emulated_device,
    emulated_job,
)
from paceline.hardware import Cluster, Device, catalogue
from paceline.hardware.link import Link
from paceline.lab import missing_for_lab
from paceline.measurement.job import Job
from paceline.measurement.run_job import run_job
from paceline.predictor.comm.measured_curve import MeasuredCurve
from paceline.predictor.evidence import Evidence
from paceline.predictor.plan.plan import Plan
from paceline.predictor.predict import predict
from paceline.predictor.uncertainty.step_corrections import StepCorrections
from paceline.render.figures import Crossover, LineSeries, LinesInfo, draw, standalone
from paceline.render.number_format import Ranged
from paceline.store import Store
from paceline.units import parse_bandwidth
from paceline.workload.graph import Graph
from paceline.workload.workload import Workload
from paceline.workload.zoo.network_builder import NetworkBuilder

MIDDLE: dict[str, Any] = {
    "batch": 64,
    "arithmetic": 1.0,
    "memory": 1.0,
    "link": "500mbit",
    "hosts": 4,
}
AXES: dict[str, tuple[Any, ...]] = {
    "batch": (16, 64, 256),
    "arithmetic": (0.5, 1.0, 2.0),
    "memory": (0.5, 1.0, 2.0),
    "link": ("100mbit", "500mbit", "1gbit"),
    "hosts": (2, 4, 8),
}
BATCHES = (32, 128, 512)
"""Samples of all hosts together at which data and model parallelism are compared."""
SHARE_OF_V100 = 0.01


@cache
def network() -> Graph:
    """Two convolutions and three linear layers: 4.9 million weights, nearly all linear."""
    net = NetworkBuilder("small alexnet")
    x = net.image(3, 32, 32)
    for number, width in ((1, 64), (2, 128)):
        x = net.activation(f"relu{number}", net.conv(f"conv{number}", x, width, 3, 1, 1, bias=True))
        x = net.max_pool(f"pool{number}", x, 2, 2)
    x = net.flatten("flatten", x)
    for number in (3, 4):
        x = net.activation(f"relu{number}", net.linear(f"fc{number}", x, 512))
    return net.classifier_loss(net.linear("fc5", x, 10), classes=10)


def accelerator(arithmetic: float = 1.0, memory: float = 1.0) -> Device:
    """A hundredth of a V100, with scaled arithmetic and memory bandwidth."""
    whole = catalogue.device("v100")
    rate = SHARE_OF_V100 * arithmetic
    return replace(
        whole,
        name=f"v100/100, arithmetic x {arithmetic:g}, memory x {memory:g}",
        peak_flops={key: rate * value for key, value in whole.peak_flops.items()},
        attainable_flops={key: rate * value for key, value in whole.attainable_flops.items()},
        memory_bandwidth=SHARE_OF_V100 * memory * whole.known_memory_bandwidth,
    )


class Laboratory:
    """Runs and predicts steps, and keeps the curves that were measured."""

    def __init__(self, store: Store, steps: int) -> None:
        self.store, self.steps = store, steps
        self.curves: dict[tuple[str, int], MeasuredCurve] = {}

    def curve(self, link: str, ranks: int) -> MeasuredCurve:
        """The all-reduce curve of ``ranks`` over ``link``, measured once."""
        if (link, ranks) not in self.curves:
            self.curves[link, ranks] = curve(self.store, link, ranks, ahead=True)
        return self.curves[link, ranks]

    def data_parallel(
        self, batch: int, arithmetic: float, memory: float, link: str, hosts: int
    ) -> dict[str, Any]:
        """A step of ``batch`` samples on each host."""
        workload = Workload(network(), batch)
        device = emulated_device(accelerator(arithmetic, memory), workload, "torch-ddp")
        known, rate = self.curve(link, hosts), parse_bandwidth(link)
        predicted = predict_emulated(network(), device, hosts, known, link=rate)
        return self.run(device, batch, link, hosts, predicted.step.seconds, synchronise=True)

    def model_parallel(self, batch: int, link: str, hosts: int) -> dict[str, Any]:
        """A step of ``batch`` samples of all hosts, each with its part of every layer."""
        workload = Workload(network(), batch)
        shard = emulated_shard(accelerator(), workload, hosts)
        wire = Link("lab link", "inter", parse_bandwidth(link), transport="tcp")
        asleep = Device(f"emulated {shard.name}", "", "cpu", {})
        predicted = predict(
            workload,
            Cluster("lab", asleep, 1, hosts, inter=wire),
            Plan(tp=hosts, framework="torch-ddp"),
            evidence=Evidence(
                alone_seconds=shard.step_seconds,
                layers=shard.layers,
                update_seconds=shard.update_seconds,
            ),
            corrections=StepCorrections(unhidden_share=0.0),
        )
        return self.run(shard, batch, link, hosts, predicted.step.seconds, synchronise=False)

    def run(
        self,
        device: EmulatedDevice,
        batch: int,
        link: str,
        hosts: int,
        predicted: float,
        *,
        synchronise: bool,
    ) -> dict[str, Any]:
        """One launch and its prediction."""
        job = Job(
            model=network().name,
            graph=network().to_json(),
            batch_per_rank=batch,
            world_size=hosts,
            nodes=hosts,
            steps=self.steps,
            warmup_steps=3,
            synchronise=synchronise,
            launcher="lab",
            launcher_options=(f"link={link}",),
        )
        launch = run_job(emulated_job(job, device), self.store, "lab axes")
        return row([launch], predicted, batch=batch, link=link, hosts=hosts)


def measure_axes(lab: Laboratory, axes: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Measure every axis with the others at their middle."""
    found: dict[str, list[dict[str, Any]]] = {}
    for axis in axes:
        found[axis] = []
        for value in AXES[axis]:
            one = lab.data_parallel(**{**MIDDLE, axis: value})
            found[axis].append({**one, "axis": axis, "value": value})
            show(one, f"{axis} = {value}")
    return found


def measure_crossover(lab: Laboratory) -> dict[str, Any]:
    """Data and model parallelism at the same batches of all hosts."""
    link, hosts = MIDDLE["link"], MIDDLE["hosts"]
    plans: dict[str, list[dict[str, Any]]] = {"data": [], "model": []}
    for batch in BATCHES:
        data = lab.data_parallel(batch // hosts, 1.0, 1.0, link, hosts)
        model = lab.model_parallel(batch, link, hosts)
        for name, one in (("data", data), ("model", model)):
            plans[name].append({**one, "batch": batch})
            show(one, f"{name} parallel, {batch} samples")
    crossings = {
        kind: crossing(
            [math.log(batch) for batch in BATCHES],
            [
                math.log(model[f"{kind}_seconds"] / data[f"{kind}_seconds"])
                for data, model in zip(plans["data"], plans["model"], strict=True)
            ],
        )
        for kind in ("predicted", "measured")
    }
    found = {"plans": plans, "crossover_log_batch": crossings}
    print(describe_crossover(found))
    return found


def describe_crossover(found: dict[str, Any]) -> str:
    """The crossover batch, measured and predicted."""
    found_at = {
        kind: "none in this range" if x is None else f"{math.exp(x):.0f} samples"
        for kind, x in found["crossover_log_batch"].items()
    }
    return f"crossover: measured {found_at['measured']}, predicted {found_at['predicted']}"


def crossing(xs: Sequence[float], ys: Sequence[float]) -> float | None:
    """The first upward zero crossing of a polyline; None without one."""
    for i in range(len(xs) - 1):
        if ys[i] < 0 <= ys[i + 1]:
            return xs[i] + (xs[i + 1] - xs[i]) * -ys[i] / (ys[i + 1] - ys[i])
    return None


def amount(value: Any) -> float:
    """A value of an axis as a number."""
    return parse_bandwidth(value) if isinstance(value, str) else float(value)


def draw_axes(found: dict[str, list[dict[str, Any]]]) -> str:
    """Step over each axis relative to its middle, predicted and measured."""
    series = []
    for axis, rows in found.items():
        for kind in ("predicted", "measured"):
            points = tuple(
                (amount(one["value"]) / amount(MIDDLE[axis]), Ranged(1e3 * one[f"{kind}_seconds"]))
                for one in rows
            )
            dashed = kind == "predicted"
            series.append(LineSeries(f"{axis}, {kind}", points, dashed, list(found).index(axis)))
    info = LinesInfo(
        "axis, relative to its middle", "step (ms)", tuple(series), log_x=True, log_y=True
    )
    return standalone(draw(info))


def draw_crossover(found: dict[str, Any]) -> str:
    """Step of both plans over the batch, with the measured and the predicted crossover."""
    series = tuple(
        LineSeries(
            f"{name} parallel, {kind}",
            tuple((float(one["batch"]), Ranged(1e3 * one[f"{kind}_seconds"])) for one in rows),
            kind == "predicted",
            number,
        )
        for number, (name, rows) in enumerate(found["plans"].items())
        for kind in ("predicted", "measured")
    )
    middle = 1e3 * found["plans"]["data"][1]["measured_seconds"]
    label, measured = describe_crossover(found), found["crossover_log_batch"]["measured"]
    crossings = () if measured is None else (Crossover(math.exp(measured), middle, label),)
    title = "samples of all hosts"
    info = LinesInfo(title, "step (ms)", series, crossings, log_x=True, log_y=True)
    return standalone(draw(info))


def main() -> None:
    """Run the selected axes, print and draw the results."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--axes", default=",".join(AXES), help="comma-separated axes; '' for none")
    parser.add_argument("--out", type=Path, default=Path("lab-axes"), help="folder of the figures")
    options = parser.parse_args()
    missing = missing_for_lab()
    if missing:
        sys.exit(f"no lab: {missing}")
    figures: dict[str, Any] = {"machine": machine()}
    options.out.mkdir(parents=True, exist_ok=True)
    print(f"  {'':44} predicted measured   error    CV   load   (ms per step)")
    with tempfile.TemporaryDirectory() as directory, Store(Path(directory) / "lab.db") as store:
        lab = Laboratory(store, 3 if options.quick else 6)
        axes = [axis for axis in options.axes.split(",") if axis]
        if axes:
            figures["axes"] = measure_axes(lab, axes)
            (options.out / "axes.svg").write_text(draw_axes(figures["axes"]), encoding="utf-8")
        figures["crossover"] = measure_crossover(lab)
        page = draw_crossover(figures["crossover"])
        (options.out / "crossover.svg").write_text(page, encoding="utf-8")
    print(f"figures: {options.out}")
    finish(figures, options.json)


if __name__ == "__main__":
    main()
