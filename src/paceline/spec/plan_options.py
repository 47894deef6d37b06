"""The options of a `Plan`."""

from collections.abc import Mapping, Sequence
from typing import Any

from paceline.errors import InputError
from paceline.naming import look_up
from paceline.predictor.comm.compression import NO_COMPRESSION, Compression, CompressionKind
from paceline.predictor.framework_profiles import framework as find_framework
from paceline.predictor.plan.plan import Plan, plan_for
from paceline.predictor.plan.plan_choices import (
    ContextForm,
    Offload,
    OptimiserState,
    PipelineSchedule,
    Recompute,
)
from paceline.predictor.plan.sync_policy import Synchronisation, synchronisation
from paceline.predictor.predict import DEFAULT_FRAMEWORK
from paceline.spec.job_options import JobOptions
from paceline.units import parse_bytes

_AS_IN_PLAN = (
    *("dp", "tp", "pp", "cp", "ep", "zero", "micro_batch", "micro_batches", "interleave"),
    *("fused_attention", "framework", "shard_group", "expert_imbalance", "tp_overlap"),
)
"""Options that are fields of a `Plan` without conversion."""
MOST_MICRO_BATCHES = 20_000


def plan_of(plan: Plan | None, devices: int, options: JobOptions) -> Plan:
    """``plan`` if given, else the plan of the options on ``devices``."""
    if plan is not None:
        return plan
    if options.get("sequence_parallel") and options.get("tp", 1) == 1:
        raise InputError(
            "--sequence-parallel needs tensor parallelism",
            "add --tp 2, or omit --sequence-parallel",
        )
    if (options.get("micro_batches") or 1) > MOST_MICRO_BATCHES:
        raise InputError(
            f"too many micro-batches: {options.get('micro_batches')} "
            f"(maximum {MOST_MICRO_BATCHES:,})",
            "use larger micro-batches",
        )
    given: Mapping[str, Any] = {**options, **_micro_batch_of_a_pipeline(options)}
    return plan_for(
        devices,
        **{name: given[name] for name in _AS_IN_PLAN if name in given},
        pipeline=PipelineSchedule(options.get("pipeline", "1f1b")),
        stage_layers=_numbers(options.get("stage_layers")),
        **_recompute(options.get("recompute", "none")),
        optimiser_state=optimiser_state_of(options),
        context_form=_context_form(options.get("context_form")),
        offload=_offload(options.get("offload")),
        sequence_parallel=_sequence_parallel(options),
        synchronisation=synchronisation_of(options),
        compression=_compression(options.get("compression")),
    )


def _micro_batch_of_a_pipeline(options: JobOptions) -> dict[str, int]:
    """Default of one sample: a pipeline of one micro-batch cannot overlap stages."""
    unset = options.get("micro_batch") is None and options.get("micro_batches") is None
    return {"micro_batch": 1} if unset and options.get("pp", 1) > 1 else {}


def _recompute(given: str) -> dict[str, Any]:
    """``none``, ``selective``, ``full``, or ``every:2`` for every second block."""
    name, _, every = given.partition(":")
    if name == "every" and every.isdigit() and int(every) > 0:
        return {"recompute": Recompute.FULL, "recompute_every": int(every)}
    known = {str(each): each for each in Recompute}
    hint = f"one of {', '.join(known)}, or every:2 for every second block"
    return {"recompute": look_up("recomputation", given, known, hint)}


def optimiser_state_of(options: JobOptions) -> OptimiserState:
    """The precision of optimiser state."""
    known = {str(each): each for each in OptimiserState}
    name = options.get("optimiser_state", "fp32")
    return look_up("optimiser state", name, known, f"one of {', '.join(known)}")


def _context_form(name: str | None) -> ContextForm | None:
    known = {str(each): each for each in ContextForm}
    hint = f"one of {', '.join(known)}"
    return None if name is None else look_up("form of context parallelism", name, known, hint)


def _offload(given: str | Sequence[str] | None) -> tuple[Offload, ...]:
    """``optimiser``, ``activations`` or both, comma-separated or as a list."""
    known = {str(each): each for each in Offload}
    names = given.split(",") if isinstance(given, str) else given or ()
    hint = f"one of {', '.join(known)}, or both separated by a comma"
    found = {look_up("offload", name.strip(), known, hint) for name in names}
    return tuple(sorted(found))


def _sequence_parallel(options: JobOptions) -> bool:
    """As given, else the default of the framework."""
    given = options.get("sequence_parallel")
    usual = find_framework(options.get("framework") or DEFAULT_FRAMEWORK).sequence_parallel
    return given if given is not None else usual and options.get("tp", 1) > 1


def synchronisation_of(options: JobOptions) -> Synchronisation | None:
    """The given synchronisation; None for the default of the framework."""
    overlap, bucket = options.get("overlap"), options.get("bucket")
    if overlap is None and bucket is None:
        return None
    if isinstance(overlap, Synchronisation):
        chosen = overlap
    elif overlap is None:
        chosen = find_framework(options.get("framework") or DEFAULT_FRAMEWORK).synchronisation
    else:
        chosen = synchronisation(overlap)
    return chosen if bucket is None else chosen.with_bucket(parse_bytes(bucket))


def _numbers(given: str | Sequence[int] | None) -> tuple[int, ...]:
    parts = given.split(",") if isinstance(given, str) else given or ()
    try:
        return tuple(int(part) for part in parts)
    except ValueError:
        raise InputError(
            f"--stage-layers: invalid list '{given}'", "use e.g. --stage-layers 3,4,4,3"
        ) from None


def _compression(given: str | Compression | None) -> Compression:
    if given is None or isinstance(given, Compression):
        return given or NO_COMPRESSION
    name, _, density = given.partition(":")
    kinds = {str(kind): kind for kind in CompressionKind}
    kind = look_up("compression", name, kinds, f"one of {', '.join(kinds)}")
    try:
        return Compression(kind, float(density)) if density else Compression(kind)
    except ValueError:
        raise InputError(
            f"--compression: invalid density '{density}'", "use e.g. --compression top_k:0.01"
        ) from None
