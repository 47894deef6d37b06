"""The job: all settings that the worker of a framework needs, passed to it as JSON."""

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from paceline.errors import InputError
from paceline.workload.blocks import blocks
from paceline.workload.graph import Graph
from paceline.workload.shapes import with_shapes

PROTOCOL_VERSION = 1
INSTRUMENTS = ("none", "difference", "phases", "layers")


@dataclass(frozen=True)
class Optimiser:
    """The optimiser of a job: ``sgd``, ``adam`` or ``adamw`` with its settings."""

    name: str = "sgd"
    learning_rate: float = 0.01
    momentum: float = 0.9
    weight_decay: float = 0.0


@dataclass(frozen=True)
class Job:
    """One training job for every rank of a launch; see ``protocol.md``.

    ``batch_per_rank`` counts samples. ``instrument`` is ``none`` (only a clock around the step),
    ``difference`` (parts of the step run separately after the steps), ``phases`` or ``layers``.
    Without ``synchronise``, ranks run co-located without communication, which isolates memory and
    cache contention. ``bucket_bytes`` is the bucket size of DDP; None is the default of the
    framework. ``count_flops`` requests a count of the FLOP of the forward pass, if supported.
    With ``epochs`` the job makes that many passes over its ``data`` and reports its accuracy after
    each; ``steps`` is then their length. ``emulated`` has the times of an emulated device, which
    sleeps instead of computing (`emulation`). With ``resources``, a separate process samples the
    resource use of the ranks on this machine. ``launcher`` starts the ranks; if empty, the one
    that the framework needs, else local. ``factors`` are the levels of this job in its study.
    ``hosts`` are machines by name, node by node, and ``launcher_options`` are ``name=value``.
    """

    model: str
    graph: dict[str, Any]
    batch_per_rank: int
    framework: str = "torch-ddp"
    world_size: int = 1
    nodes: int = 1
    precision: str = "fp32"
    optimiser: Optimiser = field(default_factory=Optimiser)
    steps: int = 10
    warmup_steps: int = 3
    instrument: str = "none"
    synchronise: bool = True
    bucket_bytes: float | None = None
    broadcast_buffers: bool = True
    threads: int = 1
    device: str = "cpu"
    seed: int = 1
    sequence: int | None = None
    distinct_batches: int = 4
    count_flops: bool = False
    data: dict[str, Any] = field(default_factory=lambda: {"kind": "synthetic"})
    launcher: str = ""
    factors: dict[str, Any] = field(default_factory=dict)
    hosts: tuple[str, ...] = ()
    launcher_options: tuple[str, ...] = ()
    emulated: dict[str, Any] | None = None
    epochs: int = 0
    resources: bool = False

    def __post_init__(self) -> None:
        for name, least in (
            ("batch_per_rank", 1),
            ("world_size", 1),
            ("nodes", 1),
            ("steps", 1),
            ("warmup_steps", 0),
            ("threads", 1),
            ("distinct_batches", 1),
            ("epochs", 0),
        ):
            value = getattr(self, name)
            if not isinstance(value, int) or value < least:
                label = name.replace("_", " ")
                raise InputError(
                    f"invalid {label}: {value}", f"give an integer of at least {least}"
                )
        if self.world_size % self.nodes:
            raise InputError(
                f"cannot divide {self.world_size} processes evenly over {self.nodes} nodes",
                "give -j NODESxPROCESSES, for example -j 2x4",
            )
        if self.instrument not in INSTRUMENTS:
            raise InputError(
                f"unknown instrument '{self.instrument}'", f"choose one of {', '.join(INSTRUMENTS)}"
            )
        if self.bucket_bytes is not None and not (
            self.bucket_bytes > 0 and math.isfinite(self.bucket_bytes)
        ):
            raise InputError("the bucket size must be at least 1 byte", "give a size such as 25MiB")

    def to_json(self) -> dict[str, Any]:
        """The job as recorded in the store."""
        lists = {"hosts": list(self.hosts), "launcher_options": list(self.launcher_options)}
        return {"protocol": PROTOCOL_VERSION, **asdict(self), **lists}

    def for_worker(self, replicate: int = 0) -> dict[str, Any]:
        """The job as the worker reads it: its graph with shapes, and its blocks by node names.

        Launches that train by epochs have different seeds; equal replicates of different jobs
        have the same seed, which pairs them for comparisons.
        """
        names = [node["name"] for node in self.graph["nodes"]]
        return {
            **self.to_json(),
            "graph": with_shapes(self.graph, self.sequence),
            "blocks": [
                names[block.first : block.last] for block in blocks(Graph.from_json(self.graph))
            ],
            "seed": self.seed + replicate if self.epochs else self.seed,
        }


def batch_per_rank(batch: int, world_size: int, scaling: str) -> int:
    """Samples per rank: ``batch`` itself in weak scaling, its share in strong scaling."""
    if scaling == "weak":
        return batch
    if batch % world_size:
        below = batch - batch % world_size
        raise InputError(
            f"cannot divide a global batch of {batch} evenly over {world_size} processes",
            f"give a multiple of {world_size}, for example {below or world_size} or "
            f"{below + world_size}",
        )
    return batch // world_size
