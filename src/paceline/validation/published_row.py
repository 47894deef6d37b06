"""A published row: the configuration, and separately its measured speed.

A model under test is given a `Configuration`, never a `PublishedRow` of the row it predicts, so
that no prediction can read the answer.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

SIXTEEN_BIT = frozenset(
    {"amp_fp16", "fp16", "bf16", "amp_bf16", "mixed", "fp8", "mxfp8", "mxfp4", "nvfp4"}
)
"""Precisions whose gradients may be sent in two bytes per parameter."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """One training configuration as printed by its source; None is unknown or not applicable.

    ``interleave`` counts chunks per pipeline stage, ``micro_batches`` accumulation or pipeline
    micro-batches; ``batch_per_replica`` is samples per optimizer step and data-parallel rank,
    ``global_batch`` those of the whole job. ``tuning`` is the level of tuning of the program
    (`paceline.predictor.uncertainty`), if its source shows it. Names are those of the hardware
    catalogue and of the zoo.
    """

    id: str
    family: str
    framework: str
    model: str
    precision: str
    device: str
    devices: int
    nodes: int
    devices_per_node: int
    global_batch: float
    group: str
    framework_version: str = ""
    method: str = ""
    hidden: int | None = None
    layers: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    feed_forward: int | None = None
    vocabulary: int | None = None
    tied_embeddings: bool | None = None
    n_params: float | None = None
    task: str = ""
    data: str = ""
    dp: int | None = None
    tp: int | None = None
    pp: int | None = None
    cp: int | None = None
    ep: int | None = None
    zero: int | None = None
    interleave: int | None = None
    micro_batches: int | None = None
    micro_batch: float | None = None
    batch_per_replica: float | None = None
    batch_unit: str = ""
    throughput_unit: str = ""
    sequence: int | None = None
    recompute: str = ""
    sync: str = ""
    overlap: str = ""
    fusion_megabytes: float | None = None
    intra_link: str = ""
    inter_link: str = ""
    nics_per_node: int | None = None
    extra_server_nodes: int | None = None
    scaling: str = ""
    baseline_id: str = ""
    axis: str = ""
    tuning: str = ""

    @property
    def half_precision(self) -> bool:
        """Whether gradients may be sent as 16-bit numbers."""
        return self.precision in SIXTEEN_BIT

    @property
    def unnamed(self) -> "Configuration":
        """The configuration without identifying fields; equal ones perform equally."""
        return replace(self, id="", group="", baseline_id="", axis="", scaling="")

    @property
    def what_ran(self) -> "Configuration":
        """The configuration without names, origin and derived numbers."""
        return replace(self.unnamed, family="", task="", n_params=None, batch_per_replica=None)

    @property
    def batch_per_device(self) -> float:
        """Samples per optimizer step divided by all devices of the job."""
        return self.global_batch / self.devices

    @property
    def determines_memory(self) -> bool:
        """Whether the memory of a device follows from the row: its degrees are stated."""
        return self.devices == 1 or any((self.dp, self.tp, self.pp, self.cp))

    @property
    def layout(self) -> tuple[int | float | None, ...]:
        """The fields that differ between layouts of one job: degrees and micro-batch."""
        return (self.dp, self.tp, self.pp, self.cp, self.ep, self.zero, self.micro_batch)


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """A configuration with its published throughput.

    ``throughput`` is that of the whole job in ``configuration.throughput_unit`` per second, NaN
    if the job ``failed``; ``memory_bytes`` is the published peak of one device; ``spread`` is
    relative; ``source`` and ``source_path`` name the repository and file.
    """

    configuration: Configuration
    throughput: float = math.nan
    status: str = ""
    memory_bytes: float | None = None
    spread: float | None = None
    source: str = ""
    source_path: str = ""
    notes: str = ""

    @property
    def failed(self) -> bool:
        """Whether the job did not run: out of memory, mostly."""
        return self.status == "failed"

    @property
    def step_seconds(self) -> float:
        """Seconds per optimizer step, in the batch's unit (global batch over throughput).

        If throughput counts finer units than the batch (tokens of sequences), only ratios within
        a group are meaningful.
        """
        return self.configuration.global_batch / self.throughput

    def value(self, column: str) -> Any:
        """The value of an attribute of the row or its configuration."""
        if column in Configuration.__dataclass_fields__:
            return getattr(self.configuration, column)
        return getattr(self, column)
