"""The state of the page, validated: known names and bounded numbers only."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any, cast

from paceline.errors import InputError
from paceline.hardware.catalogue import catalogue
from paceline.naming import look_up
from paceline.spec.job_options import JobArguments, JobOptions
from paceline.spec.knob import KnobField, arguments_of, knobs_of
from paceline.spec.training_options import TrainingOptions
from paceline.workload import zoo

LARGEST_COUNT = 65_536
FACTOR_RANGE = (1 / 64, 64.0)
UPLOADED = "upload:"
"""Prefix of the keys of uploaded files."""
EVIDENCE = ("trace", "allreduce_curve", "log")
"""Options whose values are uploaded files: layer times, an all-reduce curve, a training log."""
_OPENS_FILES = {"trace", "allreduce_curve", "input"}
_STATED_OTHERWISE = {"model", "cluster", "nodes", "topology", "scale"}


@dataclass(frozen=True)
class ExplorerState:
    """A job and cluster; ``options`` are the keywords of `paceline.predict` that the form has.

    ``cluster`` is empty if a device is stated.

    ``flops``, ``memory`` and ``link_rate`` are factors on the hardware's values.
    ``training`` is the length and price of a whole training run. ``study`` names measured launches
    that are drawn over the prediction. ``evidence`` are keys of uploaded files by option.
    """

    model: str = "resnet50"
    cluster: str = "dgx-1"
    nodes: int = 8
    options: Mapping[str, Any] = field(default_factory=dict)
    flops: float = 1.0
    memory: float = 1.0
    link_rate: float = 1.0
    training: TrainingOptions = field(default_factory=TrainingOptions)
    study: str = ""
    evidence: Mapping[str, str] = field(default_factory=dict)

    def keywords(self, **further: Any) -> JobOptions:
        """Keywords of `paceline.predict`, without model, cluster and nodes, and ``further``."""
        factors = {"flops": self.flops, "memory": self.memory, "link": self.link_rate}
        scale = {name: factor for name, factor in factors.items() if factor != 1.0}
        scaled = {"scale": scale} if scale else {}
        return cast(JobOptions, {**self.options, **scaled, **further})

    def command(self, per_node: int) -> list[str]:
        """The command with the same result, on ``per_node`` devices per node."""
        files = {name: key for name, key in self.evidence.items() if name != "log"}
        options: dict[str, Any] = {"model": self.model, "cluster": self.cluster, **files}
        options = {name: _file_name(value) if value else None for name, value in options.items()}
        options |= {**self.keywords(), "processes": None, "topology": f"{self.nodes}x{per_node}"}
        run = arguments_of(TrainingOptions, self.training)
        return ["paceline", "predict", *arguments_of(JobArguments, options), *run]


def _file_name(value: str) -> str:
    """The name of an uploaded file; other values as they are."""
    return value.split(":", 2)[-1] if value.startswith(UPLOADED) else value


@cache
def form_knobs() -> Mapping[str, KnobField]:
    """The knobs of the form: those that open no file, one value each."""
    left_out = _OPENS_FILES | _STATED_OTHERWISE
    knobs = {name: knob for name, knob in knobs_of(JobArguments).items() if name not in left_out}
    run = knobs_of(TrainingOptions)
    return {name: _bounded(knob) for name, knob in {**knobs, **run}.items()}


def _bounded(knob: KnobField) -> KnobField:
    """The knob with one value, and counts that the server computes quickly."""
    limits = replace(knob.knob, several=False)
    if knob.kind is int:
        limits = replace(limits, high=min(limits.high or LARGEST_COUNT, LARGEST_COUNT))
    return replace(knob, knob=limits)


@cache
def names_by_option() -> Mapping[str, list[str]]:
    """All names to select from, by option."""
    from paceline.predictor.comm.compression import CompressionKind
    from paceline.predictor.framework_profiles import framework_names
    from paceline.predictor.memory.memory_parts import OPTIMIZERS
    from paceline.predictor.plan.plan_choices import Offload, Recompute
    from paceline.predictor.plan.sync_policy import Policy
    from paceline.workload.precision import PRECISIONS

    links = catalogue().links.items()
    return {
        "device": sorted(catalogue().devices),
        "link": sorted(name for name, link in links if link.scope == "inter"),
        "intra_link": sorted(name for name, link in links if link.scope == "intra"),
        "framework": sorted(framework_names()),
        "precision": list(PRECISIONS),
        "optimizer": list(OPTIMIZERS),
        "recompute": [str(each) for each in Recompute],
        "offload": [str(each) for each in Offload],
        "overlap": [str(each) for each in Policy],
        "compression": [str(each) for each in CompressionKind],
        **{
            name: [str(choice) for choice in knob.knob.choices]
            for name, knob in form_knobs().items()
            if knob.knob.choices
        },
    }


def state_of(
    given: Mapping[str, Any], uploads: Mapping[str, Any], studies: Sequence[str] = ()
) -> ExplorerState:
    """A state from a browser's request; every value is looked up or bounded, no path is opened."""
    own = _checks(uploads, studies)
    known = {**own, **form_knobs()}
    for name in given:
        look_up("option", str(name), known, f"use one of {', '.join(known)}")
    fixed = {name: own[name](value) for name, value in given.items() if name in own}
    options = {
        name: _option(form_knobs()[name], value)
        for name, value in given.items()
        if name not in own and value not in ("", None)
    }
    run = {name: options.pop(name) for name in knobs_of(TrainingOptions) if name in options}
    evidence = {name: key for name in EVIDENCE if (key := fixed.pop(name, ""))}
    if not fixed.get("model", True) and "trace" not in evidence:
        raise InputError("no model selected", "select a network, or give a file with layer times")
    if "device" in options and fixed.get("cluster", True):
        raise InputError("both a cluster and a device are given", "clear one of the two fields")
    if not {"device", "trace"} & {*options, *evidence} and not fixed.get("cluster", True):
        raise InputError("no cluster selected", "select a cluster or a device")
    return ExplorerState(
        **fixed, options=options, training=cast(TrainingOptions, run), evidence=evidence
    )


def _checks(uploads: Mapping[str, Any], studies: Sequence[str]) -> dict[str, Callable[[Any], Any]]:
    nodes = _bounded(knobs_of(JobArguments)["nodes"])
    return {
        "model": lambda value: value and (_uploaded("model", value, uploads) or _model(value)),
        "cluster": lambda value: (
            value
            and (
                _uploaded("cluster", value, uploads)
                or _one_of("cluster", value, catalogue().clusters)
            )
        ),
        "nodes": partial(_option, nodes),
        "study": lambda value: value and _one_of("study", value, studies),
        **{name: partial(_factor, name) for name in ("flops", "memory", "link_rate")},
        **{name: partial(_evidence, name, uploads=uploads) for name in EVIDENCE},
    }


def _option(knob: KnobField, value: Any) -> Any:
    if knob.name in names_by_option():
        return _one_of(knob.name, value, names_by_option()[knob.name])
    if knob.kind is bool:
        return knob.check({"true": True, "false": False}.get(str(value).lower(), value))
    return knob.read(value, knob.name) if isinstance(value, str) else knob.check(value)


def _model(value: Any) -> str:
    zoo.family(str(value))
    return str(value)


def _uploaded(option: str, value: Any, uploads: Mapping[str, Any]) -> str:
    """The key of an uploaded file that is a value of ``option``; empty for other values."""
    key = str(value)
    if not key.startswith(UPLOADED):
        return ""
    if key not in uploads:
        raise InputError("the uploaded file has expired", "upload the file again")
    if uploads[key].option != option:
        raise InputError(f"{_file_name(key)} is no {option}", f"it is: {uploads[key].option}")
    return key


def _evidence(option: str, value: Any, uploads: Mapping[str, Any]) -> str:
    if not value:
        return ""
    found = _uploaded(option, value, uploads)
    if not found:
        raise InputError(f"{option} must be an uploaded file (got {value!r:.60})")
    return found


def _one_of(what: str, value: Any, known: Any) -> str:
    table = dict.fromkeys(known)
    look_up(what, str(value), table, f"select one of the {len(table)} names in the list")
    return str(value)


def _factor(name: str, value: Any) -> float:
    low, high = FACTOR_RANGE
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = 0.0
    if not low <= number <= high:
        raise InputError(f"{name} must be a factor between 1/64 and 64 (got {value!r:.60})")
    return number
