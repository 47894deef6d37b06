"""Accuracy of predictions with known inputs: emulated devices in a lab of shaped links.

Emulated DistributedDataParallel on N = 2, 4 and 8 hosts, over 100 Mbit/s and 1 Gbit/s, with three
bucket sizes and two sizes of gradients. Each step is predicted before it runs, from the emulated
layer times and an all-reduce curve measured with as many ranks in such a lab (three messages in
flight). ``--framework`` selects another framework than DDP, with its own messages. Then ResNet-20
is trained on two hosts, predicted from co-located processes without communication and such a
curve. Targets: median absolute error at most 4 %, worst at most 8 %; ResNet-20 at most 6 %.

Needs root (network namespaces) and an otherwise idle machine; load and variation are printed with
each row, and rows at a load above the number of cores are marked '!'.
"""

import os
import statistics
import sys
import tempfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from common import arguments, finish, machine
from emulated_lab import predict_emulated

from paceline.analysis.launch_statistics import step_seconds
from paceline.calibration.emulation import EMULATING, EmulatedDevice, emulated_job
from paceline.hardware.link import Link
from paceline.hardware.this_machine import machine_cluster
from paceline.lab import missing_for_lab
from paceline.launch import LaunchSettings, launcher
from paceline.measurement.job import Job
from paceline.measurement.probe.link_probe import LINK_BYTES, probe_links
from paceline.measurement.probe.machine_probe import probe_machine
from paceline.measurement.run_job import run_job
from paceline.predictor.comm.measured_curve import MeasuredCurve
from paceline.predictor.evidence import Evidence
from paceline.predictor.kernels.layer_traces import layer_times, traced_graph
from paceline.predictor.plan.plan import Plan
from paceline.predictor.predict import predict
from paceline.stats.estimate import variation
from paceline.step.layer_trace import LayerTrace, TracedLayer
from paceline.store import Launch, Status, Store
from paceline.units import parse_bandwidth
from paceline.workload import zoo
from paceline.workload.workload import Workload

MIB = 2**20
LAYERS = 24
FORWARD_SECONDS, BACKWARD_SECONDS, UPDATE_SECONDS = 0.08, 0.16, 0.004
GRADIENTS = (8 * MIB, 24 * MIB)
BUCKETS = (1 * MIB, 4 * MIB, 25 * MIB)
LINKS = ("100mbit", "1gbit")
RANKS = (2, 4, 8)
TARGETS = {"median": 0.04, "worst": 0.08, "resnet20": 0.06}


def network(gradient_bytes: int) -> LayerTrace:
    """Layers as convolutional networks have them: work first, weights last."""
    share = LAYERS * (LAYERS + 1) / 2
    layers = []
    for number in range(1, LAYERS + 1):
        weights = 4 * round(gradient_bytes * number / share / 4)
        work = (LAYERS + 1 - number) / share
        layers.append(
            TracedLayer(f"l{number}", FORWARD_SECONDS * work, BACKWARD_SECONDS * work, weights)
        )
    return LayerTrace(tuple(layers), f"{gradient_bytes // MIB} MiB of gradients")


def curve(store: Store, link: str, ranks: int, ahead: bool) -> MeasuredCurve:
    """The all-reduce curve of ``ranks`` hosts over ``link``."""
    starter = launcher("lab", LaunchSettings(options={"link": link}))
    found = probe_links(store, starter, ranks, sizes=LINK_BYTES, ahead=ahead)
    return MeasuredCurve.through([(point.size_bytes, point.seconds) for point in found.points])


def row(launches: list[Launch], predicted: float, **facts: Any) -> dict[str, Any]:
    """Predicted and measured step, with variation and load."""
    failed = [one.outcome.reason for one in launches if one.status is not Status.FINISHED]
    if failed:
        sys.exit(f"a launch failed: {failed[0]}")
    steps = [step_seconds(launch) for launch in launches]
    measured = statistics.fmean(statistics.fmean(one) for one in steps)
    load = max(launch.outcome.facts["load_after"] for launch in launches)
    return {
        **facts,
        "predicted_seconds": predicted,
        "measured_seconds": measured,
        "error": predicted / measured - 1.0,
        "variation": statistics.fmean(variation(one) for one in steps),
        "load_average": load,
        "doubtful": load > (os.cpu_count() or 1),
    }


def show(one: dict[str, Any], label: str) -> None:
    """One line of the table."""
    mark = "!" if one["doubtful"] else " "
    print(
        f"{mark} {label:44} {one['predicted_seconds'] * 1e3:8.1f} "
        f"{one['measured_seconds'] * 1e3:8.1f} {one['error']:+7.2%} {one['variation']:7.2%} "
        f"{one['load_average']:5.1f}",
        flush=True,
    )


def emulated_rows(store: Store, options: Any) -> Iterator[dict[str, Any]]:
    """Every selected emulated configuration, predicted first."""
    for link, ranks in product(options.links, options.ranks):
        known = curve(store, link, ranks, ahead=True)
        buckets = BUCKETS if options.framework == "torch-ddp" else (None,)
        for gradients, bucket in product(GRADIENTS, buckets):
            trace = network(gradients)
            graph = traced_graph(trace)
            device = EmulatedDevice("a device", tuple(layer_times(trace)), UPDATE_SECONDS)
            prediction = predict_emulated(
                graph,
                device,
                ranks,
                known,
                link=parse_bandwidth(link),
                framework=options.framework,
                bucket_bytes=bucket,
            )
            job = emulated_job(
                Job(
                    model=graph.name,
                    graph=graph.to_json(),
                    batch_per_rank=1,
                    framework=options.framework,
                    world_size=ranks,
                    nodes=ranks,
                    steps=options.steps,
                    warmup_steps=3,
                    bucket_bytes=bucket,
                    launcher="lab",
                    launcher_options=(f"link={link}",),
                ),
                device,
            )
            runs = [run_job(job, store, "lab accuracy") for _ in range(options.launches)]
            facts = {"link": link, "ranks": ranks, "gradient_bytes": gradients, "bucket": bucket}
            one = row(runs, prediction.step.seconds, **facts)
            how = f"in buckets of {bucket // MIB:2}" if bucket else f"under {options.framework}"
            show(one, f"{link:8} N={ranks}  {gradients // MIB:3} MiB {how}")
            yield one


def real_rows(store: Store, options: Any) -> Iterator[dict[str, Any]]:
    """ResNet-20 on two hosts; the step without communication is measured on co-located ranks."""
    graph, profile = zoo.build("resnet20"), probe_machine(store)
    for link in options.links:
        known = curve(store, link, 2, ahead=False)
        job = Job(
            model=graph.name,
            graph=graph.to_json(),
            batch_per_rank=32,
            world_size=2,
            nodes=2,
            steps=2 * options.steps,
            launcher="lab",
            launcher_options=(f"link={link}",),
        )
        quiet = Job(**{**job.__dict__, "synchronise": False})
        alone, together = [], []
        for _ in range(max(2, options.launches)):
            alone.append(run_job(quiet, store, "lab accuracy"))
            together.append(run_job(job, store, "lab accuracy"))
        without = statistics.fmean(statistics.fmean(step_seconds(one)) for one in alone)
        wire = Link("lab link", "inter", parse_bandwidth(link), transport="tcp")
        prediction = predict(
            Workload(graph, 32),
            machine_cluster(profile, 1, 2, wire),
            Plan(dp=2, framework="torch-ddp"),
            evidence=Evidence(alone_seconds=without, all_reduce={2: known}),
        )
        one = row(together, prediction.step.seconds, link=link, ranks=2, model="resnet20")
        show(one, f"{link:8} N=2  ResNet-20 trained, batch 32")
        yield one


def main() -> None:
    """Run the selected parts and print the results."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--links", default=",".join(LINKS), help="comma-separated links")
    parser.add_argument(
        "--ranks", default=",".join(map(str, RANKS)), help="comma-separated numbers of hosts"
    )
    parser.add_argument("--steps", type=int, help="counted steps of a launch [5, quick: 3]")
    parser.add_argument("--launches", type=int, help="launches of each [2, quick: 1]")
    parser.add_argument(
        "--framework",
        choices=EMULATING,
        default="torch-ddp",
        help="framework of the emulated ranks",
    )
    parser.add_argument("--part", choices=("all", "emulated", "real"), default="all")
    options = parser.parse_args()
    missing = missing_for_lab()
    if missing:
        sys.exit(f"no lab: {missing}")
    options.links = options.links.split(",")
    options.ranks = [int(ranks) for ranks in options.ranks.split(",")]
    options.steps = options.steps or (3 if options.quick else 5)
    options.launches = options.launches or (1 if options.quick else 2)
    figures: dict[str, Any] = {"machine": machine(), "emulated": [], "real": []}
    print(f"  {'':44} predicted measured   error    CV   load   (ms per step)")
    with tempfile.TemporaryDirectory() as directory, Store(Path(directory) / "lab.db") as store:
        if options.part != "real":
            figures["emulated"] = list(emulated_rows(store, options))
        if options.part != "emulated":
            figures["real"] = list(real_rows(store, options))
    summarise(figures)
    finish(figures, options.json)


def summarise(figures: dict[str, Any]) -> None:
    """Median and worst error with the targets; doubtful rows are included and counted."""
    emulated = [abs(one["error"]) for one in figures["emulated"]]
    if emulated:
        figures["median_absolute_error"] = statistics.median(emulated)
        figures["worst_absolute_error"] = max(emulated)
        print(
            f"emulated: {len(emulated)} configurations, median {statistics.median(emulated):.1%} "
            f"(target {TARGETS['median']:.0%}), worst {max(emulated):.1%} "
            f"(target {TARGETS['worst']:.0%})"
        )
    for one in figures["real"]:
        print(
            f"ResNet-20 over {one['link']}: {one['error']:+.1%} (target {TARGETS['resnet20']:.0%})"
        )
    doubtful = sum(one["doubtful"] for one in figures["emulated"] + figures["real"])
    if doubtful:
        print(
            f"{doubtful} rows were measured at a load above the number of cores: repeat when idle"
        )


if __name__ == "__main__":
    main()
