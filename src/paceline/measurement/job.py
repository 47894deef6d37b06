"""The job: everything a framework's worker needs to know, written to it as JSON."""

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
    ``difference`` (parts of the step run alone after the steps), ``phases`` or ``layers``. With
    ``synchronise`` off, ranks are co-located without communication: what sharing the machine costs,
    without what communicating costs. ``bucket_bytes`` is DDP's bucket size, the framework's own
    when None. ``count_flops`` asks a framework that can to count the forward pass's operations.
    With ``epochs`` the job trains so many times through its ``data`` and says its accuracy after
    each; ``steps`` is then what fits into them. ``emulated`` has times of an emulated device,
    slept in place of computing (`emulation`).
    With ``resources`` a process beside the launch samples what its ranks on this machine use.
    ``launcher`` names what starts the ranks; empty, what the framework needs, else local.
    ``factors`` are the levels that a study chose for this job, by name.
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
                words = name.replace("_", " ")
                raise InputError(f"{words} of {value} is impossible", f"give at least {least}")
        if self.world_size % self.nodes:
            raise InputError(
                f"{self.world_size} processes do not divide over {self.nodes} nodes",
                "give -j NODESxPROCESSES, as in -j 2x4",
            )
        if self.instrument not in INSTRUMENTS:
            raise InputError(
                f"no instrument '{self.instrument}'", f"choose one of {', '.join(INSTRUMENTS)}"
            )
        if self.bucket_bytes is not None and not (
            self.bucket_bytes > 0 and math.isfinite(self.bucket_bytes)
        ):
            raise InputError("a bucket must hold at least one byte", "write it like 25MiB")

    def to_json(self) -> dict[str, Any]:
        """The job as it is recorded."""
        lists = {"hosts": list(self.hosts), "launcher_options": list(self.launcher_options)}
        return {"protocol": PROTOCOL_VERSION, **asdict(self), **lists}

    def for_worker(self, replicate: int = 0) -> dict[str, Any]:
        """The job as the worker reads it: its graph with shapes, and its blocks by node names.

        Launches that train to an accuracy have a seed each, by which they vary; the same
        ``replicate`` of another job has the same.
        """
        names = [node["name"] for node in self.graph["nodes"]]
        return {
            **self.to_json(),
            "graph": with_shapes(self.graph, self.sequence),
            "blocks": [names[one.first : one.last] for one in blocks(Graph.from_json(self.graph))],
            "seed": self.seed + replicate if self.epochs else self.seed,
        }


def batch_per_rank(batch: int, world_size: int, scaling: str) -> int:
    """Samples per rank: ``batch`` itself in weak scaling, its share in strong scaling."""
    if scaling == "weak":
        return batch
    if batch % world_size:
        below = batch - batch % world_size
        raise InputError(
            f"a global batch of {batch} does not divide over {world_size} processes",
            f"strong scaling needs a multiple, such as {below or world_size} or "
            f"{below + world_size}",
        )
    return batch // world_size
