"""How a job is spread, in the words of a person: the keywords that make a `Plan`."""

from collections.abc import Mapping, Sequence
from typing import Any

from paceline.api.requests import JobWords
from paceline.errors import InputError
from paceline.naming import look_up
from paceline.plan.choices import (
    ContextForm,
    Offload,
    OptimiserState,
    PipelineSchedule,
    Recompute,
)
from paceline.plan.compression import NO_COMPRESSION, Compression, CompressionKind
from paceline.plan.plan import Plan, plan_for
from paceline.plan.synchronisation import Synchronisation, synchronisation
from paceline.predictor.frameworks import framework as find_framework
from paceline.predictor.predict import DEFAULT_FRAMEWORK
from paceline.units import parse_bytes

_AS_IN_PLAN = (
    *("dp", "tp", "pp", "cp", "ep", "zero", "micro_batch", "micro_batches", "interleave"),
    *("fused_attention", "framework", "shard_group", "expert_imbalance", "tp_overlap"),
)
"""Keywords that are fields of a `Plan` as they are."""
MOST_MICRO_BATCHES = 20_000


def plan_of(plan: Plan | None, devices: int, words: JobWords) -> Plan:
    """The plan on so many devices: ``plan`` as it is, or what the degrees make of them."""
    if plan is not None:
        return plan
    if words.get("sequence_parallel") and words.get("tp", 1) == 1:
        raise InputError(
            "sequence parallelism divides tokens between tensor-parallel ranks",
            "add --tp 2, or leave --sequence-parallel out",
        )
    if (words.get("micro_batches") or 1) > MOST_MICRO_BATCHES:
        raise InputError(
            f"{words.get('micro_batches')} micro-batches cannot be meant",
            f"give at most {MOST_MICRO_BATCHES:,}",
        )
    given: Mapping[str, Any] = {**words, **_micro_batch_of_a_pipeline(words)}
    return plan_for(
        devices,
        **{name: given[name] for name in _AS_IN_PLAN if name in given},
        pipeline=PipelineSchedule(words.get("pipeline", "1f1b")),
        stage_layers=_numbers(words.get("stage_layers")),
        **_recompute(words.get("recompute", "none")),
        optimiser_state=optimiser_state_of(words),
        context_form=_context_form(words.get("context_form")),
        offload=_offload(words.get("offload")),
        sequence_parallel=_sequence_parallel(words),
        synchronisation=synchronisation_of(words),
        compression=_compression(words.get("compression")),
    )


def _micro_batch_of_a_pipeline(words: JobWords) -> dict[str, int]:
    """One sample where nothing is said: a pipeline of one micro-batch has nothing to overlap."""
    unsaid = words.get("micro_batch") is None and words.get("micro_batches") is None
    return {"micro_batch": 1} if unsaid and words.get("pp", 1) > 1 else {}


def _recompute(given: str) -> dict[str, Any]:
    """``none``, ``selective``, ``full``, or ``every:2`` for all of every second block."""
    name, _, every = given.partition(":")
    if name == "every" and every.isdigit() and int(every) > 0:
        return {"recompute": Recompute.FULL, "recompute_every": int(every)}
    known = {str(each): each for each in Recompute}
    hint = f"one of {', '.join(known)}, or every:2 for each second block"
    return {"recompute": look_up("recomputation", given, known, hint)}


def optimiser_state_of(words: JobWords) -> OptimiserState:
    """How the optimiser keeps its momenta."""
    known = {str(each): each for each in OptimiserState}
    name = words.get("optimiser_state", "fp32")
    return look_up("optimiser state", name, known, f"one of {', '.join(known)}")


def _context_form(name: str | None) -> ContextForm | None:
    known = {str(each): each for each in ContextForm}
    hint = f"one of {', '.join(known)}"
    return None if name is None else look_up("form of context parallelism", name, known, hint)


def _offload(given: str | Sequence[str] | None) -> tuple[Offload, ...]:
    """``optimiser``, ``activations`` or both, by commas or as a list."""
    known = {str(each): each for each in Offload}
    names = given.split(",") if isinstance(given, str) else given or ()
    hint = f"one of {', '.join(known)}, or both by a comma"
    found = {look_up("offload", name.strip(), known, hint) for name in names}
    return tuple(sorted(found))


def _sequence_parallel(words: JobWords) -> bool:
    """As asked for, else as the framework does it as a rule."""
    asked = words.get("sequence_parallel")
    usual = find_framework(words.get("framework") or DEFAULT_FRAMEWORK).sequence_parallel
    return asked if asked is not None else usual and words.get("tp", 1) > 1


def synchronisation_of(words: JobWords) -> Synchronisation | None:
    """The synchronisation that is asked for; None for the framework's own."""
    overlap, bucket = words.get("overlap"), words.get("bucket")
    if overlap is None and bucket is None:
        return None
    if isinstance(overlap, Synchronisation):
        chosen = overlap
    elif overlap is None:
        chosen = find_framework(words.get("framework") or DEFAULT_FRAMEWORK).synchronisation
    else:
        chosen = synchronisation(overlap)
    return chosen if bucket is None else chosen.with_bucket(parse_bytes(bucket))


def _numbers(given: str | Sequence[int] | None) -> tuple[int, ...]:
    parts = given.split(",") if isinstance(given, str) else given or ()
    try:
        return tuple(int(part) for part in parts)
    except ValueError:
        raise InputError(
            f"'{given}' is not a list of numbers", "write --stage-layers 3,4,4,3"
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
            f"'{density}' is not a fraction", "write --compression top_k:0.01"
        ) from None
