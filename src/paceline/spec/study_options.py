"""Settings of a study: keywords of `measure`, options of commands and keys of study files."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypedDict

from paceline.errors import InputError
from paceline.spec.knob import Knob
from paceline.stats.designs import KINDS
from paceline.topology import Topology, as_topologies, parse_counts
from paceline.units import parse_bytes, parse_seconds, parse_share

ORDERS = {
    "random": "blocks with every configuration once, shuffled",
    "blocked": "as random, but within a block, equal levels of block_by follow each other",
    "given": "blocks in the order of the settings",
}
MOST = 10**9
"""Largest valid count, such as samples or steps."""

Names = str | Sequence[str]


def parse_names(value: Any) -> tuple[str, ...]:
    """Names of ``"a,b"`` or ``["a", "b"]``, each once."""
    return tuple(dict.fromkeys(parse_hosts(value)))


def parse_hosts(value: Any) -> tuple[str, ...]:
    """Names of ``"a,b"`` or ``["a", "b"]``; repetitions are kept."""
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
        raise InputError(f"expected a list of names (got {value!r:.60})", 'write ["a", "b"]')
    return tuple(part.strip() for part in parts if part.strip())


def parse_threads(value: Any) -> tuple[int, ...]:
    """Threads per process: ``2``, ``"1,2"`` or ``[1, 2]``."""
    if isinstance(value, str):
        return tuple(parse_counts(value, "threads", "--threads"))
    counts = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not counts or any(type(count) is not int or count < 1 for count in counts):
        raise InputError(
            f"expected positive integers (got {value!r:.60})", "write threads = 1 or [1, 2]"
        )
    return tuple(dict.fromkeys(counts))


def parse_processes(value: Any) -> tuple[Topology, ...]:
    """Topologies, each once: ``2``, ``"1x1,1x2"`` or ``[1, 2, "2x4"]``."""
    return tuple(dict.fromkeys(as_topologies(value)))


def positive(parse: Callable[[Any], float]) -> Callable[[Any], float]:
    """``parse`` for quantities greater than 0."""

    def parsed(value: Any) -> float:
        found = parse(value)
        if not 0 < found < math.inf:
            raise InputError(f"must be greater than 0 (got {value!r:.60})", "give a larger value")
        return found

    return parsed


class ModelOption(TypedDict, total=False):
    """The trained network."""

    model: Annotated[
        str,
        Knob(
            "Built-in model; see 'paceline catalog models'.",
            group="Study",
            metavar="NAME",
            default="resnet44",
        ),
    ]


class FrameworkOption(TypedDict, total=False):
    """The frameworks that train it."""

    frameworks: Annotated[
        Names,
        Knob(
            "Framework; several are tested for parity and ranked. See 'paceline frameworks'.",
            group="Study",
            option="--framework",
            metavar="NAME[,NAME]",
            parse=parse_names,
            default="torch-ddp",
        ),
    ]


class LaunchOptions(TypedDict, total=False):
    """All other settings of a study."""

    batch: Annotated[
        int, Knob("Samples per process and step.", "Study", low=1, high=MOST, default="64")
    ]
    processes: Annotated[
        int | str | Sequence[int | str],
        Knob(
            "Nodes x processes per node; comma-separated.",
            group="Study",
            option="-j",
            metavar="NODESxPROCESSES[,...]",
            parse=parse_processes,
            default="1x1",
        ),
    ]
    scaling: Annotated[
        str,
        Knob(
            "weak: --batch is per process; strong: --batch is divided among processes.",
            group="Study",
            choices=("weak", "strong"),
            default="weak",
        ),
    ]
    seq: Annotated[
        int,
        Knob("Sequence length in tokens.", "Study", low=1, high=MOST, default="the published one"),
    ]
    precision: Annotated[
        str,
        Knob("Precision of training.", "Study", choices=("fp32", "bf16"), default="fp32"),
    ]
    optimizer: Annotated[
        str,
        Knob(
            "Optimizer; sgd has a momentum of 0.9, adamw a weight decay of 0.01.",
            group="Study",
            choices=("sgd", "adam", "adamw"),
            default="sgd",
        ),
    ]
    threads: Annotated[
        int | str | Sequence[int],
        Knob(
            "Threads (and pinned cores) per process; comma-separated.",
            group="Study",
            metavar="N[,N]",
            parse=parse_threads,
            default="1",
        ),
    ]
    oversubscribe: Annotated[bool, Knob("Allow more processes x threads than cores.", "Study")]
    instruments: Annotated[
        Names,
        Knob(
            "Instrumentation of launches: none (throughput), phases, layers; comma-separated.",
            group="Study",
            option="--instrument",
            metavar="KIND[,KIND]",
            parse=parse_names,
            default="none",
        ),
    ]
    no_sync: Annotated[
        bool, Knob("Also run the processes side by side without communication.", "Study")
    ]
    bucket_bytes: Annotated[
        float | str,
        Knob(
            "Bucket size of DDP, such as 25MiB.",
            group="Study",
            option="--bucket",
            metavar="BYTES",
            parse=positive(parse_bytes),
        ),
    ]
    launches: Annotated[
        int, Knob("Launches per configuration.", "Launches", low=1, high=100_000, default="3")
    ]
    steps: Annotated[
        int, Knob("Measured steps per launch.", "Launches", low=1, high=MOST, default="10")
    ]
    warmup_steps: Annotated[
        int,
        Knob("Warm-up steps, excluded from results.", "Launches", low=0, high=MOST, default="3"),
    ]
    warmup: Annotated[
        str,
        Knob(
            "detect: exclude the detected warm-up, at least --warmup-steps.",
            group="Launches",
            choices=("fixed", "detect"),
            default="fixed",
        ),
    ]
    order: Annotated[str, Knob("Order of launches.", "Launches", choices=ORDERS, default="random")]
    block_by: Annotated[str, Knob("Factor whose levels follow each other in a block.", "Design")]
    seed: Annotated[
        int,
        Knob(
            "Seed of launch order, initial weights and data.",
            group="Launches",
            low=-(2**63),
            high=2**63 - 1,
            default="1",
        ),
    ]
    launch_seconds: Annotated[
        float | str,
        Knob(
            "Time limit of a launch.",
            group="Launches",
            option="--timeout",
            metavar="DURATION",
            key="limits.time",
            parse=positive(parse_seconds),
            default="10min",
        ),
    ]
    memory_bytes: Annotated[
        float | str,
        Knob(
            "Memory limit of a node.",
            group="Launches",
            option="--memory-limit",
            metavar="BYTES",
            key="limits.memory",
            parse=positive(parse_bytes),
            default="the memory of the machine",
        ),
    ]
    half_width: Annotated[
        float | str,
        Knob(
            "Add launches until the half-width of the interval is below this share of the mean, "
            "such as 2%.",
            group="Stopping rule",
            metavar="PERCENT",
            key="stopping.half_width",
            parse=parse_share,
        ),
    ]
    most_launches: Annotated[
        int,
        Knob(
            "Maximum number of launches per configuration.",
            group="Stopping rule",
            option="--max-launches",
            key="stopping.launches",
            low=1,
            high=100_000,
            default="30",
        ),
    ]
    most_seconds: Annotated[
        float | str,
        Knob(
            "Maximum time of all launches.",
            group="Stopping rule",
            option="--max-time",
            metavar="DURATION",
            key="stopping.time",
            parse=positive(parse_seconds),
        ),
    ]
    data: Annotated[
        str,
        Knob(
            "Dataset: synthetic, digits, cifar10:DIRECTORY, image_folder:DIRECTORY, npz:FILE.",
            group="Training",
            metavar="DATASET",
            default="synthetic",
        ),
    ]
    epochs: Annotated[
        int,
        Knob(
            "Epochs to train; each launch uses its own seed and reports accuracy.",
            group="Training",
            low=0,
            high=MOST,
        ),
    ]
    learning_rate: Annotated[float, Knob("Learning rate.", "Training", default="0.01")]
    learning_rate_rule: Annotated[
        str,
        Knob(
            "Scaling of the learning rate with the global batch size.",
            group="Training",
            choices=("constant", "linear", "root"),
            default="constant",
        ),
    ]
    target_accuracy: Annotated[
        float | str,
        Knob(
            "Report the time to reach this accuracy, such as 95%.",
            group="Training",
            metavar="PERCENT",
            key="accuracy.target",
            parse=parse_share,
        ),
    ]
    accuracy_margin: Annotated[
        float | str,
        Knob(
            "Equivalence margin of accuracies.",
            group="Training",
            metavar="PERCENT",
            key="accuracy.margin",
            parse=parse_share,
            default="1%",
        ),
    ]
    resources: Annotated[
        bool,
        Knob("Sample CPU, memory, network, GPU and power usage during each launch.", "Training"),
    ]
    node_price: Annotated[float, Knob("Price of a node per hour.", "Training", low=0)]
    launcher: Annotated[
        str,
        Knob(
            "Launcher of the processes.",
            group="Launcher",
            metavar="NAME",
            default="local, or the one the framework requires",
        ),
    ]
    hosts: Annotated[
        Names,
        Knob(
            "Host names of the nodes; comma-separated.",
            group="Launcher",
            metavar="HOST[,HOST]",
            parse=parse_hosts,
        ),
    ]
    launcher_options: Annotated[
        Names,
        Knob(
            "Option of the launcher, such as partition=debug; repeatable.",
            group="Launcher",
            option="--launcher-option",
            metavar="NAME=VALUE",
            repeated=True,
        ),
    ]
    labs: Annotated[
        Names,
        Knob(
            "Run in a virtual cluster, such as link=1gbit+delay=200us+speed=0.5; repeatable.",
            group="Emulation",
            option="--lab",
            metavar="SETTINGS",
            repeated=True,
        ),
    ]
    emulate: Annotated[
        str,
        Knob(
            "Emulate a device, such as v100: sleep instead of computing.",
            group="Emulation",
            metavar="DEVICE",
        ),
    ]
    time_scale: Annotated[
        float,
        Knob(
            "Slow down the emulated device by this factor (use with equally slower links).",
            group="Emulation",
            low=1e-6,
            high=1e6,
            default="1.0",
        ),
    ]
    factors: Annotated[
        Mapping[str, Sequence[Any]], Knob("Levels of varied settings, by name.", "Design")
    ]
    design_kind: Annotated[
        str, Knob("Combinations of levels to run.", "Design", key="design.kind", choices=KINDS)
    ]
    generators: Annotated[
        Names,
        Knob(
            "Generators of a fractional design.",
            "Design",
            key="design.generators",
            parse=parse_names,
        ),
    ]
    runs: Annotated[
        Sequence[Mapping[str, Any]],
        Knob("Combinations of a list design.", "Design", key="design.run"),
    ]


class SettingOptions(FrameworkOption, LaunchOptions, total=False):
    """Settings of a study of one model."""


class StudyOptions(ModelOption, SettingOptions, total=False):
    """Settings of a study; an omitted one has the default of `paceline.study.StudySettings`."""


LAUNCHER = ("launcher", "hosts", "launcher_options")
"""Settings that can replace those of a study file on the command line."""
FILE_ONLY = ("block_by", "factors", "design_kind", "generators", "runs")
"""Settings without an option on the command line."""
