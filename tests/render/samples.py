"""One sample of every figure, and a page of them all.

Run as a program it writes that page, to be looked at: python tests/report/samples.py out.html
"""

import random
import sys

from paceline.render.figures import (
    BarSeries,
    BarsInfo,
    CollectiveInfo,
    CollectiveSeries,
    Crossover,
    LayersInfo,
    LayerSize,
    LineSeries,
    LinesInfo,
    MessageSize,
    PhaseBar,
    PhasesInfo,
    RepeatedRow,
    RepetitionsInfo,
    ScalingInfo,
    ScalingPoint,
    ScalingSeries,
    ScatterGroup,
    ScatterInfo,
    ScatterPoint,
    WaterfallInfo,
    efficiency_table,
    figure,
    gantt_info,
    utilisation_info,
)
from paceline.render.files import write_text
from paceline.render.html_page import Fact, Page, Section, render
from paceline.render.number_format import Ranged
from paceline.render.table import Column, Table
from paceline.step import Phase, Step, Task
from paceline.step.schedule import schedule
from paceline.step.waterfall import ItemKind, Waterfall, WaterfallItem


def scaling_series(label, base, loss, counts=(1, 2, 4, 8, 12), is_predicted=False):
    points = []
    for devices in counts:
        value = base * devices / (1 + loss * (devices - 1))
        points.append(ScalingPoint(devices, Ranged(value, value * 0.95, value * 1.05)))
    return ScalingSeries(label, tuple(points), is_predicted)


def throughput() -> ScalingInfo:
    series = (
        scaling_series("PyTorch DDP", 3100, 0.02),
        scaling_series("Horovod", 2900, 0.035),
        scaling_series("predicted", 3100, 0.025, is_predicted=True),
    )
    return ScalingInfo("throughput (img/s)", series, "img/s", "V100 GPUs")


def speed_up() -> ScalingInfo:
    series = tuple(
        scaling_series(label, 1, loss, (1, 2, 4, 8, 16, 32, 64, 128, 256))
        for label, loss in (("PyTorch DDP", 0.002), ("MXNet", 0.006), ("TensorFlow", 0.02))
    )
    return ScalingInfo("speed-up", series, "times", "GPUs")


def phases() -> PhasesInfo:
    return PhasesInfo(
        (
            PhaseBar(
                "1 process", {"input": 0.004, "forward": 0.2, "backward": 0.4, "update": 0.02}
            ),
            PhaseBar(
                "2 processes, measured",
                {
                    "input": 0.006,
                    "forward": 0.21,
                    "backward": 0.43,
                    "communicate": 0.012,
                    "update": 0.02,
                    "wait": 0.01,
                },
                hidden_seconds=0.05,
            ),
            PhaseBar(
                "2 processes, predicted",
                {
                    "input": 0.006,
                    "copy": 0.01,
                    "forward": 0.21,
                    "backward": 0.42,
                    "communicate": 0.016,
                    "update": 0.02,
                    "other": 0.006,
                },
                hidden_seconds=0.045,
            ),
        )
    )


def layers() -> LayersInfo:
    chance = random.Random(1)
    sizes = [4 * 16 * 16 * 9 * 4 ** (i // 15) * chance.choice([1, 1, 0.1]) for i in range(45)]
    named = tuple(LayerSize(f"stage{i // 15}.conv{i}", s) for i, s in enumerate(sizes[::-1]))
    messages = tuple(
        MessageSize(sum(layer.gradient_bytes for layer in named[a : b + 1]), a, b)
        for a, b in ((0, 3), (4, 10), (11, 20), (21, 44))
    )
    return LayersInfo(named, messages)


def collective() -> CollectiveInfo:
    chance = random.Random(2)
    series = []
    for label, latency, rate in (("2 ranks", 160e-6, 1.9e9), ("4 ranks", 390e-6, 1.1e9)):
        sizes = [2.0**power for power in range(8, 27, 2)]
        curve = [(size, latency + size / rate) for size in sizes]
        measured = []
        for size, seconds in curve:
            seconds *= chance.uniform(0.85, 1.15)
            measured.append((size, Ranged(seconds, seconds * 0.9, seconds * 1.12)))
        series.append(CollectiveSeries(label, tuple(measured), tuple(curve)))
    return CollectiveInfo(tuple(series))


def sample_step() -> Step:
    tasks: list[Task] = []
    for rank in range(2):
        tasks.append(Task("load", Phase.INPUT, "input", 0.012, rank=rank))
        for layer in range(12):
            before = (len(tasks) - 1,)
            name = f"forward {layer}"
            tasks.append(Task(name, Phase.FORWARD, "compute", 0.014, before, rank))
        for layer in reversed(range(12)):
            tasks.append(Task(f"backward {layer}", Phase.BACKWARD, "compute", 0.03, (), rank))
            if layer % 4 == 0:
                after = (len(tasks) - 1,)
                name = f"all-reduce {layer}"
                tasks.append(Task(name, Phase.COMMUNICATE, "network", 0.07, after, rank))
        tasks.append(Task("update", Phase.UPDATE, "compute", 0.02, (len(tasks) - 1,), rank))
    return schedule(tasks)


def sample_waterfall() -> Waterfall:
    return Waterfall.between(
        WaterfallItem("ideal step", 0.625, ItemKind.IDEAL),
        0.683,
        [
            WaterfallItem("co-located ranks", 0.041, note="memory bandwidth and cache shared"),
            WaterfallItem("jitter", 0.010),
            WaterfallItem("exposed all-reduce", 0.006, note="1 bucket of 2.6 MB"),
        ],
    )


def scatter() -> ScatterInfo:
    chance = random.Random(3)
    groups = []
    for label, spread in (("Caffe-MPI", 0.05), ("CNTK", 0.1), ("MXNet", 0.07), ("TensorFlow", 0.2)):
        points = []
        for case in range(30):
            measured = 10 ** chance.uniform(1, 3.6)
            predicted = measured * 2.718 ** chance.gauss(0, spread)
            points.append(ScatterPoint(measured, predicted, f"case {case}"))
        groups.append(ScatterGroup(label, tuple(points)))
    return ScatterInfo(tuple(groups))


def bars() -> BarsInfo:
    return BarsInfo(
        "throughput (img/s)",
        ("2 cores AMD EPYC", "V100, PCIe", "V100, NVLink", "A100, NVLink"),
        (
            BarSeries(
                "PyTorch", (Ranged(102, 98, 106), Ranged(2800), Ranged(3100, 2950, 3240), None)
            ),
            BarSeries(
                "MXNet",
                (
                    Ranged(88, 80, 93),
                    Ranged(2400, 2200, 2600),
                    Ranged(2900),
                    Ranged(6200, 6000, 6500),
                ),
            ),
        ),
        "img/s",
    )


def lines() -> LinesInfo:
    batches = [2**power for power in range(3, 12)]
    data = tuple((b, Ranged(0.9 + 40 / b, 0.86 + 36 / b, 0.94 + 44 / b)) for b in batches)
    model = tuple((b, Ranged(0.7 + 0.0037 * b)) for b in batches)
    return LinesInfo(
        "batch per node",
        "step time relative to one node",
        (LineSeries("data parallel", data), LineSeries("model parallel", model)),
        (Crossover(138, 1.2, "data parallel pays from 138"),),
        log_x=True,
    )


def launches() -> RepetitionsInfo:
    rows = tuple(
        RepeatedRow(label, (0.98 * mean, mean, 1.02 * mean), Ranged(mean, low, high))
        for label, mean, low, high in (
            ("1 process", 102.4, 100.5, 104.3),
            ("2 processes", 187.6, 183.5, 191.7),
        )
    )
    return RepetitionsInfo("throughput (img/s)", rows, "img/s")


def all_infos() -> dict[str, object]:
    step = sample_step()
    return {
        "Throughput": throughput(),
        "Speed-up": speed_up(),
        "Phases": phases(),
        "Layers and messages": layers(),
        "All-reduce": collective(),
        "Timeline": gantt_info(step),
        "Resource utilisation": utilisation_info(step),
        "Waterfall": WaterfallInfo(sample_waterfall()),
        "Predicted and measured": scatter(),
        "Machines": bars(),
        "Launches": launches(),
        "Data against model parallel": lines(),
    }


def sample_table() -> Table:
    return Table(
        (
            Column(""),
            Column("measured", "img/s"),
            Column("predicted", "img/s"),
            Column("error", "%", scale=100, signed=True, decimals=1),
            Column("perfect scaling", "img/s"),
            Column("bound by"),
        ),
        (
            ("1 process", Ranged(102.4, 100.5, 104.3), None, None, None, "compute"),
            ("2 processes", Ranged(187.6, 183.5, 191.7), Ranged(190.3, 178, 202), 0.014, 204.8, ""),
            ("4 nodes", None, Ranged(391, 350, 421), None, 409.6, "10 GbE"),
            ("8 nodes", None, Ranged(775, 690, 830), None, 819.2, "10 GbE"),
            ("16 nodes", None, Ranged(1540, 1380, 1660), None, 1638.4, "10 GbE: 2.6 MB in 4 ms"),
        ),
        "Predicted and measured",
        "± and [ ] are 95 % intervals over launches.",
    )


def sample_page() -> Page:
    half = {"Throughput", "Speed-up", "All-reduce", "Data against model parallel"}
    figures = [
        figure(title, info, f"What `{title}` shows, in a sentence.", half=title in half)
        for title, info in all_infos().items()
    ]
    sections = [
        Section(
            "Prediction against measurement",
            "The prediction uses launches of one process and the probe only: "
            "`no synchronised run` of two processes entered it.",
            [sample_table(), efficiency_table(throughput().series, "img/s", "GPU")],
            warnings=["Load was 1.4 in 3 of 8 launches. Repeat: `paceline measure --launches 8`"],
        ),
        Section("Scaling", "Two figures side by side.", figures=figures[:2]),
        Section("Where the time goes", figures=[figures[7], figures[2]]),
        Section("Communication", figures=[figures[4], figures[10], figures[3]]),
        Section("The step", figures=figures[5:7], notes=["Bars with a dark edge are critical."]),
        Section("Validation", figures=figures[8:10]),
    ]
    facts = [
        Fact("2 processes, measured", "187.6 img/s", "± 4.1, 95 % over 4 launches"),
        Fact("2 processes, predicted", "190.3 img/s", "178 to 202"),
        Fact("Error of the prediction", "+1.4 %", "perfect scaling: +9.2 %"),
        Fact("Efficiency", "91.6 %", "of two single processes"),
    ]
    provenance = [
        Fact("Paceline", "0.1.0"),
        Fact("Machine", "2 cores, 24 GiB, no GPU"),
        Fact("Framework", "torch 2.13.0+cpu"),
        Fact("Design", "4 launches each, random order", "warm-up 5 steps"),
    ]
    title = "ResNet-44 on this machine, 1 and 2 processes"
    return Page(title, "Synthetic CIFAR-10, batch 64 per process", facts, sections, provenance)


if __name__ == "__main__":
    print(write_text(sys.argv[1], render(sample_page())))
