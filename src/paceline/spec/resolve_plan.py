"""The plan and the training program of options."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

from paceline.errors import InputError
from paceline.naming import look_up
from paceline.predictor.comm.compression import Compression, CompressionKind
from paceline.predictor.framework_profiles import framework as find_framework
from paceline.predictor.plan.plan import Plan, plan_for
from paceline.predictor.plan.plan_choices import (
    ContextForm,
    ExpertDispatch,
    LossKernel,
    Module,
    Offload,
    OptimizerState,
    PipelineSchedule,
    Recompute,
)
from paceline.predictor.plan.sync_policy import Synchronisation, synchronisation
from paceline.predictor.predict import DEFAULT_FRAMEWORK
from paceline.predictor.uncertainty.covariates import Program, Tuning
from paceline.spec.job_options import JobOptions
from paceline.units import parse_bytes, read_integer, read_number


def plan_of(plan: Plan | None, devices: int, options: JobOptions) -> Plan:
    """``plan`` if given, else the plan of the options on ``devices``."""
    if plan is not None:
        return plan
    if options.get("sequence_parallel") and options.get("tp", 1) == 1:
        raise InputError(
            "--sequence-parallel needs tensor parallelism",
            "add --tp 2, or omit --sequence-parallel",
        )
    return plan_for(
        devices,
        **{
            **_micro_batch_of_a_pipeline(options),
            "sequence_parallel": _default_sequence_parallel(options),
            **plan_fields(options),
        },
    )


def plan_fields(options: JobOptions) -> dict[str, Any]:
    """Fields of `Plan` that the options state."""
    given = {name: value for name, value in options.items() if value is not None}
    convert: dict[str, Callable[[Any], Any]] = {
        "pipeline": PipelineSchedule,
        "optimizer_state": OptimizerState,
        "cp_impl": ContextForm,
        "ep_impl": ExpertDispatch,
        "loss_kernel": LossKernel,
        "stage_layers": _numbers,
        "offload": _offload,
        "compression": _compression,
    }
    names = [each.name for each in fields(Plan) if each.name in given and each.name != "recompute"]
    found = {name: convert.get(name, _same)(given[name]) for name in names}
    if "recompute" in given:
        found |= _recompute(str(given["recompute"]))
    synchronisation = synchronisation_of(options)
    return found if synchronisation is None else {**found, "synchronisation": synchronisation}


def plan_options(plan: Plan) -> dict[str, Any]:
    """Options that state a plan; None for those at their default, and for ``dp``, which follows."""
    usual = Plan()
    names = [each.name for each in fields(Plan) if each.name in JobOptions.__annotations__]
    given = {name: getattr(plan, name) for name in names}
    found = {
        name: None if value == getattr(usual, name) else value for name, value in given.items()
    }
    written = plan.format_recompute
    return {**found, "dp": None, "recompute": None if written == "none" else written}


def _same(value: Any) -> Any:
    return value


def _micro_batch_of_a_pipeline(options: JobOptions) -> dict[str, int]:
    """Default of one sample: a pipeline of one micro-batch cannot overlap stages."""
    unset = options.get("micro_batch") is None and options.get("micro_batches") is None
    return {"micro_batch": 1} if unset and options.get("pp", 1) > 1 else {}


def _recompute(given: str) -> dict[str, Any]:
    """A policy, ``every:2`` for every second block, or modules separated by commas."""
    names = [each.strip() for each in given.split(",")]
    if len(names) > 1 or names[0] in {*Module}:
        known_modules = {str(each): each for each in Module}
        hint = f"modules are {', '.join(known_modules)}"
        found = {look_up("module", each, known_modules, hint) for each in names}
        ordered = tuple(each for each in Module if each in found)
        return {"recompute": Recompute.SELECTIVE, "recompute_modules": ordered}
    name, _, every = given.partition(":")
    if name == "every" and every.isascii() and every.isdigit() and int(every) > 0:
        return {"recompute": Recompute.FULL, "recompute_every": int(every)}
    known = {str(each): each for each in Recompute}
    hint = (
        f"one of {', '.join(known)}, every:2 for every second block, or modules such as "
        f"{Module.MLP},{Module.LAYER_NORM}"
    )
    return {"recompute": look_up("recomputation", given, known, hint)}


def _offload(given: str | Sequence[str]) -> tuple[Offload, ...]:
    """State to offload, comma-separated or as a list."""
    known = {str(each): each for each in Offload}
    names = given.split(",") if isinstance(given, str) else given
    hint = f"one of {', '.join(known)}, or several separated by commas"
    found = {look_up("offload", name.strip(), known, hint) for name in names}
    return tuple(sorted(found))


def _default_sequence_parallel(options: JobOptions) -> bool:
    """As the framework does; programs with expert and tensor parallelism require it (Megatron)."""
    profile = find_framework(options.get("framework") or DEFAULT_FRAMEWORK)
    usual = profile.sequence_parallel or profile.usual_sequence_parallel
    return (usual or options.get("ep", 1) > 1) and options.get("tp", 1) > 1


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


def _numbers(given: str | Sequence[int]) -> tuple[int, ...]:
    parts = given.split(",") if isinstance(given, str) else given
    try:
        return tuple(read_integer(str(part)) for part in parts)
    except ValueError:
        raise InputError(
            f"--stage-layers: invalid list '{given}'", "use e.g. --stage-layers 3,4,4,3"
        ) from None


def _compression(given: str | Compression) -> Compression:
    if isinstance(given, Compression):
        return given
    name, _, density = given.partition(":")
    kinds = {str(kind): kind for kind in CompressionKind}
    kind = look_up("compression", name, kinds, f"one of {', '.join(kinds)}")
    try:
        return Compression(kind, read_number(density)) if density else Compression(kind)
    except ValueError:
        raise InputError(
            f"--compression: invalid density '{density}'", "use e.g. --compression top_k:0.01"
        ) from None


def program_of(options: JobOptions) -> Program:
    """The description of the training program."""
    name = options.get("tuning")
    return Program() if name is None else Program(tuning=Tuning(name))
