"""Factors of a study by name, and the setting that each level becomes."""

from collections.abc import Callable, Mapping
from typing import Any

from paceline.errors import InputError
from paceline.naming import look_up
from paceline.spec.knob import knobs_of
from paceline.spec.study_options import StudyOptions

FACTORS = {
    "framework": "frameworks",
    "bucket": "bucket_bytes",
    "link": "labs",
    "lab": "labs",
    "instrument": "instruments",
    **{
        name: name
        for name in (
            *("model", "batch", "processes", "threads", "precision", "optimizer", "seq"),
            *(
                "learning_rate",
                "learning_rate_rule",
                "data",
                "epochs",
                "scaling",
                "steps",
                "launcher",
            ),
        )
    },
}
"""The setting that each factor changes."""


def _check_model(name: str) -> None:
    from paceline.workload import zoo

    zoo.build(name)


def _check_framework(name: str) -> None:
    from paceline.frameworks.framework_registry import framework

    framework(name)


def _check_launcher(name: str) -> None:
    from paceline.launch import launcher

    launcher(name)


def _check_data(text: str) -> None:
    from paceline.study.training_data import data_source

    data_source(text)


_CHECKS: dict[str, Callable[[str], None]] = {
    "model": _check_model,
    "framework": _check_framework,
    "launcher": _check_launcher,
    "data": _check_data,
}


def settings_at(levels: Mapping[str, Any]) -> dict[str, Any]:
    """Settings for these levels."""
    return {FACTORS[name]: level_value(name, level) for name, level in levels.items()}


def level_value(name: str, level: Any) -> Any:
    """Convert a level to the value of its setting; an error if it is invalid."""
    setting = look_up("factor", name, FACTORS, f"one of {', '.join(FACTORS)}")
    if isinstance(level, list | tuple | dict | None) or (
        setting == "labs" and type(level) is not str
    ):
        raise InputError(f"invalid level of {name}: {level!r:.60}", "write one value per level")
    if setting == "labs":
        return (f"link={level}" if name == "link" else level,)
    value = knobs_of(StudyOptions)[setting].check(level, name)
    if name in _CHECKS:
        _CHECKS[name](level)
    if isinstance(value, tuple) and len(value) != 1:
        raise InputError(f"{name}: '{level}' is not a single level", f"write {name} = [1, 2]")
    return value


def check_levels(name: str, levels: Any) -> None:
    """Raise an error for invalid or duplicate levels of a factor."""
    look_up("factor", name, FACTORS, f"one of {', '.join(FACTORS)}")
    if not isinstance(levels, list | tuple) or not levels:
        raise InputError(
            f"{name} must be a list of levels (got {levels!r:.60})", f"write {name} = [1, 2]"
        )
    for level in levels:
        level_value(name, level)
    if len({repr(level) for level in levels}) < len(levels):
        raise InputError(f"{name} has a duplicate level", f"write each level of {name} once")
