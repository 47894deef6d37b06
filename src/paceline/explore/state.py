"""The state of the page, validated: known names and bounded numbers only."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

from paceline.errors import InputError
from paceline.hardware.catalogue import catalogue
from paceline.naming import look_up
from paceline.workload import zoo

LARGEST_COUNT = 65_536
FACTOR_RANGE = (1 / 64, 64.0)
UPLOADED = "upload:"
"""Prefix of the names of uploaded models."""


@dataclass(frozen=True)
class ExplorerState:
    """A job and cluster as options of `paceline predict`; empty or 0 means the default.

    ``flops``, ``memory`` and ``link_rate`` are factors on the hardware's values.
    ``study`` names measured launches that are drawn over the prediction.
    """

    model: str = "resnet50"
    batch: int = 0
    seq: int = 0
    precision: str = ""
    cluster: str = "dgx-1"
    nodes: int = 8
    processes: int = 0
    framework: str = ""
    link: str = ""
    tp: int = 1
    pp: int = 1
    zero: int = 0
    recompute: str = "none"
    tuning: str = ""
    flops: float = 1.0
    memory: float = 1.0
    link_rate: float = 1.0
    study: str = ""

    def words(self) -> dict[str, Any]:
        """Keywords of `paceline.predict`, without model, cluster and nodes."""
        scale = {"flops": self.flops, "memory": self.memory, "link": self.link_rate}
        given: dict[str, Any] = {
            "batch": self.batch or None,
            "seq": self.seq or None,
            "precision": self.precision or None,
            "processes": self.processes or None,
            "framework": self.framework or None,
            "link": self.link or None,
            "tuning": self.tuning or None,
            "tp": self.tp,
            "pp": self.pp,
            "zero": self.zero,
            "recompute": self.recompute,
            "scale": {name: factor for name, factor in scale.items() if factor != 1.0},
        }
        defaults = {"tp": 1, "pp": 1, "zero": 0, "recompute": "none", "scale": {}}
        return {
            name: value
            for name, value in given.items()
            if value is not None and defaults.get(name) != value
        }

    def command(self, per_node: int) -> list[str]:
        """The command with the same result, on ``per_node`` devices per node."""
        model = "FILE" if self.model.startswith(UPLOADED) else self.model
        parts = ["paceline", "predict", "--model", model, "--cluster", self.cluster]
        for name, value in self.words().items():
            if name == "processes":
                continue
            text = ",".join(f"{k}={v:g}" for k, v in value.items()) if name == "scale" else value
            parts += [f"--{name.replace('_', '-')}", str(text)]
        return [*parts, "-j", f"{self.nodes}x{per_node}"]


def state_of(
    given: Mapping[str, Any], uploads: Mapping[str, Any], studies: Sequence[str] = ()
) -> ExplorerState:
    """A state from a browser's request; every value is looked up or bounded, no path is opened."""
    checks = _checks(uploads, studies)
    for name in given:
        look_up("option", str(name), checks, f"use one of {', '.join(checks)}")
    return ExplorerState(**{name: checks[name](value) for name, value in given.items()})


def _checks(uploads: Mapping[str, Any], studies: Sequence[str]) -> dict[str, Callable[[Any], Any]]:
    found: dict[str, Callable[[Any], Any]] = {
        "model": lambda value: _model(value, uploads),
        "cluster": lambda value: _one_of("cluster", value, catalogue().clusters),
        "link": lambda value: value and _one_of("link", value, choices()["links"]),
        "framework": lambda value: value and _one_of("framework", value, choices()["frameworks"]),
        "precision": lambda value: value and _one_of("precision", value, choices()["precisions"]),
        "recompute": lambda value: _one_of("recompute", value, choices()["recompute"]),
        "tuning": lambda value: value and _one_of("tuning", value, choices()["tuning"]),
        "study": lambda value: value and _one_of("study", value, studies),
        "zero": lambda value: _whole("zero", value, 0, 3),
    }
    for each in fields(ExplorerState):
        if each.type in (int, "int") and each.name not in found:
            lowest = 0 if each.name in ("batch", "seq", "processes") else 1
            found[each.name] = partial(_whole, each.name, low=lowest, high=LARGEST_COUNT)
        elif each.type in (float, "float"):
            found[each.name] = partial(_factor, each.name)
    return found


def choices() -> dict[str, list[str]]:
    """All names to select from, by option."""
    from paceline.predictor.framework_profiles import framework_names
    from paceline.predictor.plan.plan_choices import Recompute
    from paceline.predictor.uncertainty.covariates import Tuning
    from paceline.workload.precision import PRECISIONS

    known = catalogue()
    return {
        "models": zoo.names(),
        "clusters": sorted(known.clusters),
        "links": sorted(name for name, link in known.links.items() if link.scope == "inter"),
        "frameworks": sorted(framework_names()),
        "precisions": list(PRECISIONS),
        "recompute": [str(each) for each in Recompute],
        "tuning": [str(each) for each in Tuning],
    }


def _model(value: Any, uploads: Mapping[str, Any]) -> str:
    name = str(value)
    if name.startswith(UPLOADED):
        if name not in uploads:
            raise InputError("the uploaded model has expired", "upload the file again")
        return name
    zoo.family(name)
    return name


def _one_of(what: str, value: Any, known: Any) -> str:
    table = dict.fromkeys(known)
    look_up(what, str(value), table, f"select one of the {len(table)} names in the list")
    return str(value)


def _whole(name: str, value: Any, low: int, high: int) -> int:
    if isinstance(value, str) and value.strip().isdigit() and len(value) < 10:
        value = int(value)
    if type(value) is not int or not low <= value <= high:
        raise InputError(f"{name} must be an integer between {low} and {high} (got {value!r:.60})")
    return value


def _factor(name: str, value: Any) -> float:
    low, high = FACTOR_RANGE
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = 0.0
    if not low <= number <= high:
        raise InputError(f"{name} must be a factor between 1/64 and 64 (got {value!r:.60})")
    return number
