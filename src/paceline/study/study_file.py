"""A study as one TOML file: reader with located errors, and its JSON schema.

``[factors]`` has the levels of varied settings, ``[design]`` their combination, ``[stopping]`` the
stopping rule, ``[limits]`` the limits of a launch, ``[accuracy]`` the target; all other keys are
settings of every launch, as in `StudySettings`.
"""

from dataclasses import fields
from pathlib import Path
from typing import Any

from paceline.errors import InputError
from paceline.located_toml import TomlTable, read_toml
from paceline.stats.designs import KINDS
from paceline.study.study_factors import FACTORS, check_levels, settings_at
from paceline.study.study_settings import CHOICES, EXAMPLES, StudySettings
from paceline.units import parse_bytes, parse_percent, parse_seconds

SCHEMA_ADDRESS = "https://json-schema.org/draft/2020-12/schema"
SECTIONS = {
    "factors": tuple(FACTORS),
    "design": ("kind", "generators", "run"),
    "stopping": ("half_width", "launches", "time"),
    "limits": ("time", "memory"),
    "accuracy": ("target", "margin"),
}
_IN_SECTIONS = {
    *("factors", "design_kind", "generators", "runs", "half_width", "most_launches"),
    *("most_seconds", "launch_seconds", "memory_bytes", "target_accuracy", "accuracy_margin"),
}
CROSSED = ("order", "block_by", "epochs")
"""Settings that can be checked only together with others."""

ROOT_KEYS = tuple(one.name for one in fields(StudySettings) if one.name not in _IN_SECTIONS)


def read_study_file(path: Path, **others: Any) -> StudySettings:
    """Read a study file; an error names file, line, key and the nearest valid key.

    ``others`` override settings of the file.
    """
    root = read_toml(path)
    root.check_keys((*ROOT_KEYS, *SECTIONS))
    if not root.values:
        raise InputError(f"{path} has no settings", 'begin with model = "resnet20"')
    tables = {name: root.table(name) for name in SECTIONS}
    for name, known in SECTIONS.items():
        tables[name].check_keys(known)
    values = {key: value for key, value in root.values.items() if key not in SECTIONS}
    for key, value in values.items():
        if key not in CROSSED:
            with root.locating(key):
                StudySettings.of("the study", **{key: value})
    factors = tables["factors"]
    for name, levels in factors.values.items():
        with factors.locating(name):
            check_levels(name, levels)
        if FACTORS[name].setting in values and name in factors.values:
            factors.fail(name, f"{name} is both a factor and a setting", "remove one of them")
    values |= others
    values |= _design(tables["design"]) | _stopping(tables["stopping"]) | _limits(tables["limits"])
    values |= _accuracy(tables["accuracy"])
    with root.locating(_culprit(values)):
        settings = StudySettings.of(str(path), factors=dict(factors.values), **values)
    with tables["design"].locating("generators" if settings.generators else "kind"):
        for point in settings.points:
            settings_at(point)
    return settings


def _culprit(values: dict[str, Any]) -> str | None:
    return next((key for key in CROSSED if key in values), None)


def _design(table: TomlTable) -> dict[str, Any]:
    runs = table.array("run")
    for run in runs:
        run.check_keys(tuple(FACTORS))
        for name, level in run.values.items():
            with run.locating(name):
                check_levels(name, [level])
    kind = table.text_of("kind", "list" if runs else "full", tuple(KINDS))
    found: dict[str, Any] = {"design_kind": kind, "runs": tuple(dict(run.values) for run in runs)}
    if generators := table.names("generators"):
        found["generators"] = generators
    return found


def _stopping(table: TomlTable) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if table.values and "half_width" not in table.values and "time" not in table.values:
        table.fail(None, "[stopping] has no half_width", 'add half_width = "2 %"')
    if "half_width" in table.values:
        found["half_width"] = table.parsed("half_width", parse_percent)
    if "time" in table.values:
        found["most_seconds"] = table.parsed("time", parse_seconds)
    if (most := table.count("launches")) is not None:
        found["most_launches"] = most
    if "half_width" in found:
        from paceline.stats.stopping import StoppingRule

        with table.locating("half_width" if found["half_width"] >= 1 else "launches"):
            StoppingRule(found["half_width"], found.get("most_launches", 30))
    return found


def _limits(table: TomlTable) -> dict[str, Any]:
    found = {
        "launch_seconds": table.parsed("time", parse_seconds),
        "memory_bytes": table.parsed("memory", parse_bytes),
    }
    return {key: value for key, value in found.items() if value is not None}


def _accuracy(table: TomlTable) -> dict[str, Any]:
    found = {
        "target_accuracy": table.parsed("target", parse_percent),
        "accuracy_margin": table.parsed("margin", parse_percent),
    }
    return {key: value for key, value in found.items() if value is not None}


def study_schema() -> dict[str, Any]:
    """JSON schema of a study file, for editors that check TOML."""
    defaults = {one.name: one.default for one in fields(StudySettings)}
    root: dict[str, Any] = {key: _kind_of(key, defaults[key]) for key in ROOT_KEYS}
    quantity = {"type": ["string", "number"]}
    factors = {
        name: {
            "type": "array",
            "minItems": 1,
            "uniqueItems": True,
            "description": factor.words,
            "items": {"type": factor.kind if isinstance(factor.kind, str) else list(factor.kind)},
        }
        for name, factor in FACTORS.items()
    }
    run = {name: levels["items"] for name, levels in factors.items()}
    return {
        "$schema": SCHEMA_ADDRESS,
        "title": "Paceline study",
        **_table(
            {
                **root,
                "factors": _table(factors),
                "design": _table(
                    {
                        "kind": {"enum": list(KINDS), "default": "full"},
                        "generators": {"type": "array", "items": {"type": "string"}},
                        "run": {"type": "array", "items": _table(run)},
                    }
                ),
                "stopping": _table(
                    {"half_width": quantity, "launches": _kind_of("", 30), "time": quantity}
                ),
                "limits": _table({"time": quantity, "memory": quantity}),
                "accuracy": _table({"target": quantity, "margin": quantity}),
            }
        ),
    }


def _table(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _kind_of(key: str, default: Any) -> dict[str, Any]:
    if key in CHOICES:
        return {"enum": list(CHOICES[key]), "default": default}
    if key == "processes":
        topology = {"type": ["integer", "string"]}
        return {"anyOf": [topology, {"type": "array", "items": topology}]}
    if isinstance(default, tuple):
        item = {"type": "integer" if key == "threads" else "string"}
        return {"anyOf": [{"type": "string"}, item, {"type": "array", "items": item}]}
    example = EXAMPLES.get(key, default)
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string"}
    kind = {"type": kinds[type(example)]}
    return kind if default is None else {**kind, "default": default}
