"""Framework profiles: overheads, buckets and memory habits of frameworks.

Profiles are part of the framework manifests (`paceline.frameworks`), each number with its source.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from paceline import units
from paceline.frameworks import framework_registry as registry
from paceline.hardware import Device
from paceline.located_toml import TomlTable, read_toml
from paceline.naming import nearest, unknown_name
from paceline.predictor.comm.library import Library, library
from paceline.predictor.kernels.roofline import CONVOLUTIONS
from paceline.predictor.plan.plan_choices import ContextForm
from paceline.predictor.plan.sync_policy import Exchange, Policy, Synchronisation
from paceline.predictor.uncertainty.covariates import Tuning
from paceline.workload.precision import Precision, precision

_OPTIONAL_KEYS = (
    *("inherits", "aliases", "shard_stage", "gradient_views", "stages_by_cost"),
    *("sequence_parallel", "interleaves", "wide_gradients", "keeps_short_gradients"),
    *("whole_tensors_wait", "copies_keys_values", "loss_in_place", "memory_from_code"),
    *("cp_impl", "fused_gates", "tuning"),
)
_NEEDED_KEYS = (
    *("title", "synchronisation", "library", "input_overlapped", "dispatch", "step_overhead"),
    *("message_overhead", "message_latency", "tensor_overhead", "pointwise_traffic"),
    *("convolution", "policy", "source", "priors"),
)
_SYNCHRONISATION_KEYS = (
    *("policy", "first_bytes", "bucket_bytes", "piece_bytes", "exchange", "asynchronous"),
)
_WIDE_BYTES = 4
_LIBRARY_SIDES = ("accelerator", "processor")


@dataclass(frozen=True)
class FrameworkProfile:
    """Overheads, communication and memory habits of a framework.

    ``dispatch_seconds`` is host time to issue one operation, ``step_overhead_seconds`` exposed
    overhead per step, ``message_overhead_seconds`` the cost of each message on the computing
    device, ``message_latency_seconds`` the delay before each message starts,
    ``tensor_overhead_seconds`` the cost per gradient tensor (hook, copy into a bucket, buffer
    synchronisation) with more than one replica.
    ``gradient_views``: gradients are views of the buckets, so there is no second copy.
    ``stages_by_cost``: pipelines are cut by the cost of blocks and head, not by their number.
    ``wide_gradients`` are the precisions whose gradients are kept and sent in fp32; short ones
    are kept as well if it ``keeps_short_gradients``.
    ``whole_tensors_wait``: memory of tensors gathered among tensor-parallel devices is free only
    when the device has caught up with the host.
    ``copies_keys_values``: keys and values are copied out of the projection that queries are a
    view of, so both are kept. ``loss_in_place``: gradients of the scores overwrite scores and
    probabilities. ``memory_from_code``: kept tensors were read in the code of the framework and
    checked against measured peaks, so only allocator gaps are added.
    ``fused_gates``: activation and product of gated networks are one kernel that keeps its inputs
    but not the intermediate result.
    ``sequence_parallel``: sequence parallelism is on by default with tensor parallelism.
    ``interleaves``: recipes use one block per pipeline chunk.
    ``cp_impl`` is the default form of context parallelism.
    ``tuning`` is the usual tuning of jobs of this program (empty: unknown); it is not inherited
    because profiles that inherit are other programs.
    ``pointwise_traffic`` is the fraction of pointwise memory traffic left after fusion.
    ``policy`` describes the behaviour, ``priors`` names the fields that are judgements rather
    than facts of the source.
    """

    name: str
    title: str
    synchronisation: Synchronisation
    shard_stage: int
    accelerator_library: str
    processor_library: str
    input_overlapped: bool
    dispatch_seconds: float
    step_overhead_seconds: float
    message_overhead_seconds: float
    message_latency_seconds: float
    tensor_overhead_seconds: float
    gradient_views: bool
    stages_by_cost: bool
    sequence_parallel: bool
    interleaves: bool
    wide_gradients: tuple[str, ...]
    keeps_short_gradients: bool
    whole_tensors_wait: bool
    copies_keys_values: bool
    loss_in_place: bool
    memory_from_code: bool
    fused_gates: bool
    cp_impl: ContextForm
    pointwise_traffic: float
    convolution: str
    policy: str
    source: str
    priors: tuple[str, ...]
    aliases: tuple[str, ...] = ()
    tuning: str = ""

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
        usual = precision(name)
        wide = usual.name in self.wide_gradients
        return replace(usual, gradient_bytes=_WIDE_BYTES) if wide else usual

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
        return _find(own_name, _read(read_toml(Path(path)).tables()))
    return _find(name, _profiles())


def framework_names() -> list[str]:
    """Every profile."""
    return list(_profiles())


@lru_cache(maxsize=1)
def _profiles() -> dict[str, FrameworkProfile]:
    return _read(registry.profiles())


def _find(name: str, profiles: Mapping[str, FrameworkProfile]) -> FrameworkProfile:
    spellings: dict[str, FrameworkProfile] = {}
    for profile in profiles.values():
        spellings |= {_fold(alias): profile for alias in profile.aliases}
    spellings |= {_fold(own): profile for own, profile in profiles.items()}
    if _fold(name) not in spellings:
        hint = f"one of {', '.join(profiles)}"
        raise unknown_name("framework", name, spellings, hint)
    return spellings[_fold(name)]


def _fold(name: str) -> str:
    return name.strip().lower().replace("_", "-").replace(" ", "-")


def _read(tables: Mapping[str, TomlTable]) -> dict[str, FrameworkProfile]:
    """The profiles of tables that inherit from each other or from shipped ones."""
    known = {**registry.profiles(), **tables}
    return {name: _profile(table, known) for name, table in tables.items()}


def _profile(own: TomlTable, known: Mapping[str, TomlTable]) -> FrameworkProfile:
    table = _with_inherited(own, known)
    libraries = _libraries(table.table("library"))
    return FrameworkProfile(
        name=own.name,
        title=table.text_of("title"),
        synchronisation=_synchronisation(table.table("synchronisation")),
        shard_stage=_shard_stage(table),
        accelerator_library=libraries[0],
        processor_library=libraries[1],
        input_overlapped=table.flag("input_overlapped"),
        dispatch_seconds=_seconds(table, "dispatch"),
        step_overhead_seconds=_seconds(table, "step_overhead"),
        message_overhead_seconds=_seconds(table, "message_overhead"),
        message_latency_seconds=_seconds(table, "message_latency"),
        tensor_overhead_seconds=_seconds(table, "tensor_overhead"),
        gradient_views=table.flag("gradient_views"),
        stages_by_cost=table.flag("stages_by_cost"),
        sequence_parallel=table.flag("sequence_parallel"),
        interleaves=table.flag("interleaves"),
        wide_gradients=tuple(table.names("wide_gradients")),
        keeps_short_gradients=table.flag("keeps_short_gradients"),
        whole_tensors_wait=table.flag("whole_tensors_wait"),
        copies_keys_values=table.flag("copies_keys_values"),
        loss_in_place=table.flag("loss_in_place"),
        memory_from_code=table.flag("memory_from_code"),
        fused_gates=table.flag("fused_gates"),
        cp_impl=ContextForm(table.text_of("cp_impl", ContextForm.RING, tuple(ContextForm))),
        pointwise_traffic=table.parsed("pointwise_traffic", float) or 1.0,
        convolution=table.text_of("convolution", allowed=CONVOLUTIONS),
        policy=table.text_of("policy"),
        source=table.text_of("source"),
        priors=tuple(table.names("priors")),
        aliases=tuple(own.names("aliases")),
        tuning=own.text_of("tuning", allowed=("", *Tuning)),
    )


def _with_inherited(own: TomlTable, known: Mapping[str, TomlTable]) -> TomlTable:
    """A table with missing keys taken from the profiles it inherits from, nearest first."""
    own.check_keys((*_OPTIONAL_KEYS, *_NEEDED_KEYS))
    values = dict(own.values)
    seen, parent = [own.name], own.text_of("inherits")
    while parent:
        if parent not in known:
            near = ", ".join(nearest(parent, known))
            own.fail(
                "inherits",
                f"unknown parent profile '{parent}'",
                f"did you mean {near}?" if near else "use a shipped profile",
            )
        if parent in seen:
            own.fail("inherits", f"'{parent}' inherits from itself", "remove one 'inherits'")
        seen.append(parent)
        values = {**known[parent].values, **values}
        parent = known[parent].text_of("inherits")
    for key in _NEEDED_KEYS:
        if key not in values:
            own.fail(None, f"{own.title} has no {key}", "add it, or a profile to inherit from")
    return TomlTable(own.file, own.text, own.path, values)


def _seconds(table: TomlTable, key: str) -> float:
    return table.parsed(key, units.parse_seconds, may_be_zero=True) or 0.0


def _shard_stage(table: TomlTable) -> int:
    stage = table.values.get("shard_stage", 0)
    if stage not in (0, 1, 2, 3):
        table.fail(
            "shard_stage", f"shard_stage must be 0, 1, 2 or 3 (got {stage!r})", "use 0, 1, 2 or 3"
        )
    return int(stage)


def _libraries(table: TomlTable) -> tuple[str, str]:
    table.check_keys(_LIBRARY_SIDES, needed=_LIBRARY_SIDES)
    names = [table.text_of(side) for side in _LIBRARY_SIDES]
    for side, name in zip(_LIBRARY_SIDES, names, strict=True):
        with table.locating(side):
            library(name)
    return names[0], names[1]


def _synchronisation(table: TomlTable) -> Synchronisation:
    table.check_keys(_SYNCHRONISATION_KEYS)
    usual = Synchronisation()
    return Synchronisation(
        policy=Policy(table.text_of("policy", allowed=tuple(Policy))),
        first_bytes=table.parsed("first_bytes", units.parse_bytes) or usual.first_bytes,
        bucket_bytes=table.parsed("bucket_bytes", units.parse_bytes) or usual.bucket_bytes,
        piece_bytes=table.parsed("piece_bytes", units.parse_bytes) or usual.piece_bytes,
        exchange=Exchange(table.text_of("exchange", usual.exchange, tuple(Exchange))),
        asynchronous=table.flag("asynchronous"),
    )
