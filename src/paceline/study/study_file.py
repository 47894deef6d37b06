"""A study as one TOML file: the keys of `StudyOptions`, with all errors at once."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Unpack

from paceline.errors import InputError
from paceline.file_errors import Problems
from paceline.located_toml import TablePath, TomlTable, read_toml
from paceline.spec.knob import KnobField, knobs_of
from paceline.spec.study_options import StudyOptions
from paceline.study.study_factors import FACTORS, check_levels, settings_at
from paceline.study.study_settings import TUPLES, StudySettings, as_setting
from paceline.topology import format_topology
from paceline.typed_toml import Keys, fields_in

KNOBS = knobs_of(StudyOptions)
KEYS: Keys = {tuple((knob.knob.key or name).split(".")): name for name, knob in KNOBS.items()}
"""The setting of each key; keys of several parts are in tables."""

ROOT_KEYS = tuple(parts[0] for parts in KEYS if len(parts) == 1 and parts != ("factors",))
NAME = "name"
"""Key of the name of the study, which is not a setting."""

_FACTOR_KEYS: Keys = {(name,): name for name in FACTORS}
_CROSSED = ("order", "block_by", "epochs")
"""Settings that can be checked only together with others; errors are located there."""
_KEY_HINTS = {
    "framework": "did you mean 'frameworks'?",
    "nodes": 'write processes = ["2x4"] for 2 nodes of 4 processes',
    "cluster": "a study runs on this machine, or with launcher and hosts",
    "clusters": "a study runs on this machine, or with launcher and hosts",
}


def read_study_file(path: Path, **others: Unpack[StudyOptions]) -> StudySettings:
    """Read a study file; ``others`` override its settings.

    One error has all problems of the file, each with its line, key and the nearest valid key.
    """
    root = read_toml(path)
    if not root.values:
        raise InputError(f"{path} has no settings", 'begin with model = "resnet20"')
    return read_document(root, **others)


def read_document(root: TomlTable, **others: Unpack[StudyOptions]) -> StudySettings:
    """The settings of a parsed file, or of a JSON document with the same keys."""
    problems = Problems(root)
    found = fields_in(root.values, {**KEYS, (NAME,): NAME}, (), problems, _KEY_HINTS)
    found.pop(NAME, None)
    values: dict[str, Any] = {}
    for name, (where, value) in found.items():
        with problems.at(*where):
            checked = KNOBS[name].check(value, str(where[-1]))
            values[name] = as_setting(name, checked)
    _check_factors(values, found, problems)
    _check_stopping(values, problems)
    problems.check()
    values |= {name: as_setting(name, KNOBS[name].check(value)) for name, value in others.items()}
    if values.get("runs"):
        values.setdefault("design_kind", "list")
    with problems.at(next((name for name in _CROSSED if name in values), "")):
        settings = StudySettings(**values)
        with problems.at("design", "generators" if settings.generators else "kind"):
            for point in settings.points:
                settings_at(point)
    problems.check()
    return settings


def study_document(settings: StudySettings) -> dict[str, Any]:
    """The contents of a study file: all settings that differ from the default, by key."""
    document: dict[str, Any] = {}
    for parts, name in KEYS.items():
        value = getattr(settings, name)
        if value == getattr(StudySettings(), name):
            continue
        table = document
        for part in parts[:-1]:
            table = table.setdefault(part, {})
        if name == "processes":
            value = [format_topology(*topology) for topology in value]
        table[parts[-1]] = list(value) if isinstance(value, tuple) else value
    return document


def study_file_name(path: Path) -> str:
    """The name of a study in its file; the stem of the file without one."""
    name = read_toml(path).values.get(NAME, path.stem)
    if not isinstance(name, str) or not name.strip() or not name.isprintable() or "/" in name:
        raise InputError(
            f"{path}: invalid study name {name!r}", "use letters, digits, dots and dashes"
        )
    return name


def _check_factors(
    values: Mapping[str, Any], found: Mapping[str, tuple[TablePath, Any]], problems: Problems
) -> None:
    """Check names and levels of factors and of the runs of a list design."""
    factors = values.get("factors", {})
    fields_in(factors, _FACTOR_KEYS, ("factors",), problems, {})
    for name, levels in factors.items():
        if name not in FACTORS:
            continue
        with problems.at("factors", name):
            check_levels(name, levels)
        if FACTORS[name] in found:
            message = f"{name} is both a factor and a setting"
            problems.add(("factors", name), message, "remove one of them")
    for index, run in enumerate(values.get("runs", ())):
        where = ("design", "run", index)
        if not isinstance(run, dict):
            problems.add(where, f"run must be a table, not {run!r:.60}", "write [[design.run]]")
            continue
        fields_in(run, _FACTOR_KEYS, where, problems, {})
        for name, level in run.items():
            with problems.at(*where, name):
                check_levels(name, [level]) if name in FACTORS else None


def _check_stopping(values: Mapping[str, Any], problems: Problems) -> None:
    from paceline.stats.stopping import StoppingRule

    half_width, most = values.get("half_width"), values.get("most_launches")
    if half_width is not None:
        with problems.at("stopping", "launches"):
            StoppingRule(half_width, most or StudySettings.most_launches)
    elif most is not None and "most_seconds" not in values:
        problems.add(("stopping",), "[stopping] has no half_width", 'add half_width = "2 %"')


def study_schema() -> dict[str, Any]:
    """JSON schema of a study file, for editors that check TOML."""
    root: dict[str, Any] = {NAME: {"type": "string", "description": "Name of the study."}}
    for parts, name in KEYS.items():
        table = root
        for part in parts[:-1]:
            table = table.setdefault(part, _table({}))["properties"]
        table[parts[-1]] = _schema_of(KNOBS[name])
    levels = {name: _schema_of(KNOBS[setting], level=True) for name, setting in FACTORS.items()}
    unique = {"type": "array", "minItems": 1, "uniqueItems": True}
    root["factors"] = _table({name: {**unique, "items": one} for name, one in levels.items()})
    root["design"]["properties"]["run"] = {"type": "array", "items": _table(levels)}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Paceline study",
        **_table(root),
    }


def _table(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _schema_of(knob: KnobField, level: bool = False) -> dict[str, Any]:
    """Schema of a setting; of one value if it is a ``level``."""
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string"}
    types = [kinds[one] for one in knob.types if one in kinds] or ["string"]
    described: dict[str, Any] = {"description": knob.knob.text}
    bounds = {"minimum": knob.knob.low, "maximum": knob.knob.high}
    if choices := [str(choice) for choice in knob.knob.choices]:
        described["enum"] = choices
    else:
        described["type"] = types[0] if len(types) == 1 else types
        described |= {key: bound for key, bound in bounds.items() if bound is not None}
    if level or knob.name not in TUPLES:
        return described
    item = {key: value for key, value in described.items() if key != "description"}
    listed = {"type": "array", "items": item}
    return {"description": knob.knob.text, "anyOf": [item, listed]}
