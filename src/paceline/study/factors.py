"""What a study can vary: factors by name, and the setting that a level of each becomes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from paceline.errors import InputError
from paceline.naming import look_up
from paceline.places import as_places
from paceline.units import parse_bytes


@dataclass(frozen=True)
class FactorKind:
    """A factor: the ``setting`` that it sets, and how a level becomes its value.

    ``kind`` is what a level is in JSON: "string", "integer", "number" or a pair of them;
    ``words`` say what is varied.
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
    from paceline.frameworks.registry import framework

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
    "framework": FactorKind("frameworks", "string", "who trains", _framework),
    "model": FactorKind("model", "string", "a network of the zoo", _network),
    "batch": FactorKind("batch", "integer", "samples per process, or of all (strong scaling)"),
    "processes": FactorKind(
        "processes", ("integer", "string"), "processes, or NODESxPROCESSES", as_places
    ),
    "threads": FactorKind(
        "threads", "integer", "threads and cores of each process", lambda level: (level,)
    ),
    "precision": FactorKind("precision", "string", "width of numbers: fp32 or bf16"),
    "seq": FactorKind("seq", "integer", "tokens per sample"),
    "bucket": FactorKind(
        "bucket_bytes", ("string", "number"), "size of fused messages, as 25MiB", parse_bytes
    ),
    "learning_rate": FactorKind("learning_rate", "number", "of the optimiser", float),
    "learning_rate_rule": FactorKind(
        "learning_rate_rule", "string", "constant, linear or root in the global batch"
    ),
    "data": FactorKind("data", "string", "synthetic, digits, cifar10:PATH, ...", _data),
    "epochs": FactorKind("epochs", "integer", "times through the data"),
    "link": FactorKind(
        "labs", "string", "rate of links in a lab, as 1gbit", lambda level: (f"link={level}",)
    ),
    "lab": FactorKind(
        "labs", "string", "links of a lab, as link=1gbit+delay=200us", lambda level: (level,)
    ),
    "scaling": FactorKind("scaling", "string", "weak or strong"),
    "steps": FactorKind("steps", "integer", "counted steps of a launch"),
    "instrument": FactorKind(
        "instruments", "string", "none, phases or layers", lambda level: (level,)
    ),
    "launcher": FactorKind("launcher", "string", "what starts the processes", _launcher),
}
"""Factors by the name that a study file gives them."""

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
}


def settings_at(levels: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that these levels stand for."""
    return {FACTORS[name].setting: level_value(name, level) for name, level in levels.items()}


def level_value(name: str, level: Any) -> Any:
    """A level as the setting has it; an error where it is none of that factor."""
    factor = look_up("factor", name, FACTORS, f"one of {', '.join(FACTORS)}")
    kinds = (factor.kind,) if isinstance(factor.kind, str) else factor.kind
    if type(level) not in [known for kind in kinds for known in _TYPES[kind]]:
        raise InputError(
            f"{name} of {level!r} is not a {' or '.join(kinds)}", f"it is {factor.words}"
        )
    return factor.value(level)


def check_levels(name: str, levels: Any) -> None:
    """Refuse what are no levels of a factor."""
    if not isinstance(levels, list | tuple) or not levels:
        look_up("factor", name, FACTORS, f"one of {', '.join(FACTORS)}")
        raise InputError(f"{name} of {levels!r} are no levels", f"write {name} = [1, 2]")
    for level in levels:
        level_value(name, level)
    if len({repr(level) for level in levels}) < len(levels):
        raise InputError(f"{name} has a level twice", f"write each level of {name} once")
