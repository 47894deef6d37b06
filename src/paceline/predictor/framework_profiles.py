"""Framework profiles: overheads, buckets and memory habits of frameworks.

Profiles are part of the framework manifests (`paceline.frameworks`), each number with its source.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated

from paceline import units
from paceline.file_errors import Problems
from paceline.file_keys import NOT_IN_FILE, Key, quantity
from paceline.frameworks import framework_registry as registry
from paceline.hardware import Device
from paceline.located_toml import TomlTable, read_toml
from paceline.naming import nearest, unknown_name
from paceline.predictor.comm.library import Library, library
from paceline.predictor.kernels.efficiency import FLASH_2
from paceline.predictor.kernels.roofline import CONVOLUTIONS
from paceline.predictor.plan.plan_choices import (
    TORCH_LOSS_COPIES,
    ContextForm,
    ExpertDispatch,
    LossKernel,
)
from paceline.predictor.plan.sync_policy import Policy, Synchronisation
from paceline.predictor.uncertainty.covariates import Tuning
from paceline.typed_toml import read_table
from paceline.workload.precision import Precision, precision

_WIDE_BYTES = 4
_NOT_INHERITED = (
    "inherits",
    "aliases",
    "tuning",
    "usual_zero",
    "usual_recompute",
    "usual_tp_overlap",
    "usual_ep_impl",
    "usual_sequence_parallel",
    "interleaves",
)


def _seconds(key: str) -> Key:
    return quantity(units.parse_seconds, key, may_be_zero=True)


@dataclass(frozen=True)
class FrameworkProfile:
    """Overheads, communication and memory habits of a framework.

    ``dispatch_seconds`` is host time to issue one operation, ``step_overhead_seconds`` exposed
    overhead per step, ``message_overhead_seconds`` the cost of each message on the computing
    device, ``message_latency_seconds`` the delay before each message starts,
    ``tensor_overhead_seconds`` the cost per gradient tensor (hook, copy into a bucket, buffer
    synchronisation) with more than one replica.
    ``gradient_views``: gradients are views of the buckets, so there is no second copy.
    ``stages_by_cost``: pipelines are cut by the cost of blocks and head, not by their number;
    ``equal_stages``: by their number even if blocks differ, where chunks divide it.
    ``wide_gradients`` are the precisions whose gradients are kept and sent in fp32; short ones
    are kept as well if it ``keeps_short_gradients``.
    ``whole_tensors_wait``: memory of tensors gathered among tensor-parallel devices is free only
    when the device has caught up with the host.
    ``copies_keys_values``: keys and values are copied out of the projection that queries are a
    view of, so both are kept. ``packed_projection``: values are a view of the fused QKV projection,
    so it is kept whole if rotary positions copy queries and keys. ``saves_operands``: linear layers
    save their inputs in the format of their GEMMs (Transformer Engine in 8 bits).
    ``placeholder_gradients``: gradients are added to fp32 buffers by the GEMM, and each shape of a
    weight has an unused gradient in 16 bits that autograd receives. ``loss_copies`` are copies of
    the scores at the peak of the program's own loss, in fp32; ``loss_kernel`` is its default.
    ``prints_allocated``: its logs print the bytes that it allocates, not those that the
    allocator of PyTorch reserves, so no allocator gaps are added.
    ``fused_gates``: activation and product of gated networks are one kernel that keeps its inputs
    but not the intermediate result.
    ``adapted_layers``: linear layers that have adapters by default (all if empty).
    ``sequence_parallel``: sequence parallelism is on by default with tensor parallelism.
    ``divides_embeddings``: replicas divide sparse embedding tables and exchange their vectors.
    ``interleaves``: recipes divide pipelines into as many chunks as the blocks allow, counting
    embedding and head as blocks where the blocks alone do not divide.
    ``gathers_tensors``: sharded weights are gathered tensor by tensor, not in one buffer per block.
    ``most_gathered_parameters``: weights beyond this number are not gathered ahead of their use
    (stage 3; 0: no limit).
    ``host_constants`` names the host time per block of `overheads.toml` (`schedule/host_time.py`).
    ``usual_zero``, ``usual_recompute``, ``usual_tp_overlap``, ``usual_ep_impl`` and
    ``usual_sequence_parallel`` are
    what the documentation recommends for large models; published rows state what they used.
    ``attention_kernel`` is ``flash-2``, or empty for the vendor's kernels.
    ``cp_impl`` is the default form of context parallelism.
    ``tuning`` is the usual tuning of jobs of this program (empty: unknown); it is not inherited
    because profiles that inherit are other programs.
    ``pointwise_traffic`` is the fraction of pointwise memory traffic left after fusion.
    ``policy`` describes the behaviour, ``priors`` names the fields that are judgements rather
    than facts of the source.
    """

    name: Annotated[str, NOT_IN_FILE]
    title: str
    synchronisation: Synchronisation
    accelerator_library: Annotated[str, Key(key="library.accelerator")]
    processor_library: Annotated[str, Key(key="library.processor")]
    input_overlapped: bool
    dispatch_seconds: Annotated[float, _seconds("dispatch")]
    step_overhead_seconds: Annotated[float, _seconds("step_overhead")]
    message_overhead_seconds: Annotated[float, _seconds("message_overhead")]
    message_latency_seconds: Annotated[float, _seconds("message_latency")]
    tensor_overhead_seconds: Annotated[float, _seconds("tensor_overhead")]
    pointwise_traffic: Annotated[float, quantity(float)]
    convolution: Annotated[str, Key(choices=CONVOLUTIONS)]
    policy: str
    source: str
    priors: tuple[str, ...]
    shard_stage: Annotated[int, Key(low=0, high=3)] = 0
    gradient_views: bool = False
    stages_by_cost: bool = False
    equal_stages: bool = False
    sequence_parallel: bool = False
    interleaves: bool = False
    gathers_tensors: bool = False
    most_gathered_parameters: Annotated[float, quantity(float, may_be_zero=True)] = 0.0
    host_constants: str = ""
    usual_zero: Annotated[int, Key(low=0, high=3)] = 0
    usual_tp_overlap: bool = False
    usual_ep_impl: ExpertDispatch = ExpertDispatch.ALL_TO_ALL
    usual_sequence_parallel: bool = False
    usual_recompute: Annotated[str, Key(choices=("", "op", "full"))] = ""
    wide_gradients: tuple[str, ...] = ()
    keeps_short_gradients: bool = False
    whole_tensors_wait: bool = False
    copies_keys_values: bool = False
    packed_projection: bool = False
    saves_operands: bool = False
    placeholder_gradients: bool = False
    loss_copies: Annotated[float, quantity(float)] = TORCH_LOSS_COPIES
    loss_kernel: LossKernel = LossKernel.PLAIN
    prints_allocated: bool = False
    fused_gates: bool = False
    adapted_layers: tuple[str, ...] = ()
    divides_embeddings: bool = False
    attention_kernel: Annotated[str, Key(choices=("", FLASH_2))] = ""
    cp_impl: ContextForm = ContextForm.RING
    aliases: tuple[str, ...] = ()
    tuning: Annotated[str, Key(choices=("", *Tuning))] = ""

    def overhead_seconds(self, tensors: int, replicas: int) -> float:
        """Exposed overhead per step for a network of ``tensors`` gradient tensors."""
        if replicas == 1:
            return self.step_overhead_seconds
        return self.step_overhead_seconds + tensors * self.tensor_overhead_seconds

    def copies_gradients(self, synchronisation: Synchronisation) -> bool:
        """Whether flat buffers keep a second copy of all gradients."""
        flat = synchronisation.policy in (Policy.BUCKETED, Policy.ONE_MESSAGE)
        return flat and not self.gradient_views

    def precision(self, name: str) -> Precision:
        """The widths of a precision as this framework keeps and sends them."""
        own = precision(name)
        if own.name in self.wide_gradients:
            own = replace(own, gradient_bytes=_WIDE_BYTES)
        if self.saves_operands and own.other_compute:
            own = replace(own, saved_operand_bytes=own.operand_bytes)
        return own

    def gradient_bytes_kept(self, name: str) -> int:
        """Bytes of a parameter's gradient in memory, short and wide copies."""
        usual, own = precision(name).gradient_bytes, self.precision(name).gradient_bytes
        return own + usual if self.keeps_short_gradients and usual < own else own

    def library(self, device: Device) -> Library:
        """The communication library it uses between devices of this kind."""
        return library(self.processor_library if device.is_processor else self.accelerator_library)


def framework(name: str | FrameworkProfile) -> FrameworkProfile:
    """The profile of a name or alias (``pytorch_ddp``, ``mxnet_kvstore``).

    ``mine.toml:name`` is a user's profile, ``[name]`` in that file; it may inherit from a shipped
    one.
    """
    if isinstance(name, FrameworkProfile):
        return name
    path, separator, own_name = name.rpartition(":")
    if separator and path.endswith(".toml"):
        root = read_toml(Path(path))
        profiles = _read(root.tables(), Problems(root))
        return profiles[_canonical(own_name, root.tables())]
    return _shipped(name)


def framework_names() -> list[str]:
    """Every profile."""
    return list(registry.profiles())


@cache
def _shipped(spelling: str) -> FrameworkProfile:
    """A profile of a manifest by name or alias; only those that are used are read."""
    name = _canonical(spelling, registry.profiles())
    if spelling != name:
        return _shipped(name)
    table = registry.profiles()[name]
    return _read({name: table}, Problems(table))[name]


def _canonical(name: str, tables: Mapping[str, TomlTable]) -> str:
    """The name of a profile, from its name or alias."""
    spellings = {
        _fold(alias): own
        for own, table in tables.items()
        for alias in table.values.get("aliases", ())
    }
    spellings |= {_fold(own): own for own in tables}
    if _fold(name) not in spellings:
        hint = f"one of {', '.join(tables)}"
        raise unknown_name("framework", name, spellings, hint)
    return spellings[_fold(name)]


def _fold(name: str) -> str:
    return name.strip().lower().replace("_", "-").replace(" ", "-")


def _read(tables: Mapping[str, TomlTable], problems: Problems) -> dict[str, FrameworkProfile]:
    """The profiles of tables that inherit from each other or from shipped ones."""
    known = {**registry.profiles(), **tables}
    found = {}
    for name, own in tables.items():
        before = len(problems)
        table = _with_inherited(own, known, problems)
        if len(problems) > before:
            continue
        profile = read_table(table, FrameworkProfile, problems, name=own.name)
        if profile is not None:
            found[name] = profile
            for side in ("accelerator", "processor"):
                with problems.at(*own.path, "library", side):
                    library(getattr(profile, f"{side}_library"))
    problems.check()
    return found


def _with_inherited(
    own: TomlTable, known: Mapping[str, TomlTable], problems: Problems
) -> TomlTable:
    """A table with missing keys taken from the profiles it inherits from, nearest first."""
    values = {key: value for key, value in own.values.items() if key != "inherits"}
    seen, parent, where = [own.name], own.values.get("inherits"), (*own.path, "inherits")
    while parent:
        if parent not in known:
            near = ", ".join(nearest(str(parent), known))
            hint = f"did you mean {near}?" if near else "use a shipped profile"
            problems.add(where, f"unknown parent profile '{parent}'", hint)
            break
        if parent in seen:
            problems.add(where, f"'{parent}' inherits from itself", "remove one 'inherits'")
            break
        seen.append(parent)
        inherited = known[parent].values
        values = {
            **{key: value for key, value in inherited.items() if key not in _NOT_INHERITED},
            **values,
        }
        parent = inherited.get("inherits")
    return replace(own, values=values)
