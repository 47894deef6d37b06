"""Factors of a study by name, and the setting that each level becomes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from paceline.errors import InputError
from paceline.naming import look_up
from paceline.topology import as_topologies
from paceline.units import parse_bytes


@dataclass(frozen=True)
class FactorKind:
    """A factor: the ``setting`` that it changes, and the conversion of a level to its value.

    ``kind`` is the JSON type of a level: "string", "integer", "number" or several of them;
    ``words`` describes a level.
    """

    setting: str
    kind: str | tuple[str, ...]
    words: str
    value: Callable[[Any], Any] = lambda level: level


def _network(name: str) -> str:
    from paceline.workload import zoo

    zoo.build(name)
    return name


def _framework(name: str) -> tuple[str]:
    from paceline.frameworks.framework_registry import framework

    framework(name)
    return (name,)


def _launcher(name: str) -> str:
    from paceline.launch import launcher

    launcher(name)
    return name


def _data(text: str) -> str:
    from paceline.study.training_data import data_source

    data_source(text)
    return text


FACTORS = {
    "framework": FactorKind("frameworks", "string", "name of a framework", _framework),
    "model": FactorKind("model", "string", "a network of the zoo", _network),
    "batch": FactorKind(
        "batch", "integer", "samples per process, or of all processes (strong scaling)"
    ),
    "processes": FactorKind(
        "processes", ("integer", "string"), "number of processes, or NODESxPROCESSES", as_topologies
    ),
    "threads": FactorKind(
        "threads", "integer", "threads and cores per process", lambda level: (level,)
    ),
    "precision": FactorKind("precision", "string", "number format: fp32 or bf16"),
    "seq": FactorKind("seq", "integer", "tokens per sample"),
    "bucket": FactorKind(
        "bucket_bytes", ("string", "number"), "gradient bucket size, for example 25MiB", parse_bytes
    ),
    "learning_rate": FactorKind("learning_rate", "number", "learning rate of the optimiser", float),
    "learning_rate_rule": FactorKind(
        "learning_rate_rule", "string", "scaling with the global batch: constant, linear or root"
    ),
    "data": FactorKind("data", "string", "synthetic, digits, cifar10:PATH, ...", _data),
    "epochs": FactorKind("epochs", "integer", "passes over the data"),
    "link": FactorKind(
        "labs",
        "string",
        "bandwidth of lab links, for example 1gbit",
        lambda level: (f"link={level}",),
    ),
    "lab": FactorKind(
        "labs", "string", "lab options, for example link=1gbit+delay=200us", lambda level: (level,)
    ),
    "scaling": FactorKind("scaling", "string", "weak or strong"),
    "steps": FactorKind("steps", "integer", "counted steps per launch"),
    "instrument": FactorKind(
        "instruments", "string", "none, phases or layers", lambda level: (level,)
    ),
    "launcher": FactorKind("launcher", "string", "name of a launcher", _launcher),
}
"""Factors by their names in study files."""

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
}


def settings_at(levels: Mapping[str, Any]) -> dict[str, Any]:
    """Settings for these levels."""
    return {FACTORS[name].setting: level_value(name, level) for name, level in levels.items()}


def level_value(name: str, level: Any) -> Any:
    """Convert a level to the value of its setting; an error if it is invalid."""
    factor = look_up("factor", name, FACTORS, f"one of {', '.join(FACTORS)}")
    kinds = (factor.kind,) if isinstance(factor.kind, str) else factor.kind
    if type(level) not in [known for kind in kinds for known in _TYPES[kind]]:
        raise InputError(
            f"{name}: expected {' or '.join(kinds)} (got {level!r})", f"give {factor.words}"
        )
    return factor.value(level)


def check_levels(name: str, levels: Any) -> None:
    """Raise an error for invalid or duplicate levels of a factor."""
    if not isinstance(levels, list | tuple) or not levels:
        look_up("factor", name, FACTORS, f"one of {', '.join(FACTORS)}")
        raise InputError(
            f"{name} must be a list of levels (got {levels!r})", f"write {name} = [1, 2]"
        )
    for level in levels:
        level_value(name, level)
    if len({repr(level) for level in levels}) < len(levels):
        raise InputError(f"{name} has a duplicate level", f"write each level of {name} once")
