"""Every file declaration: object -> TOML -> object -> JSON -> object -> arguments -> object."""

import json
from dataclasses import fields, is_dataclass

import click
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.cli.knob_options import options_of
from paceline.file_errors import Problems
from paceline.file_keys import bare, hints_of, is_mapping, keys_of, mark_of
from paceline.frameworks import framework_registry
from paceline.hardware.catalogue import ClusterTable, shipped
from paceline.hardware.device import Device
from paceline.hardware.link import Link
from paceline.hardware.provenance import Provenance
from paceline.located_toml import parse_toml
from paceline.spec.knob import arguments_of, knobs_of
from paceline.spec.study_options import FILE_ONLY, StudyOptions
from paceline.study.study_factors import FACTORS
from paceline.study.study_file import read_document, study_document
from paceline.study.study_settings import StudySettings
from paceline.typed_toml import read_table
from toml_writer import toml_text

NAMES = st.text("abcdefgh_-0123456789", min_size=1, max_size=8)
SHARES = st.sampled_from([0.125, 0.25, 0.5, 0.75])
"""Shares that are exact as percentages, too."""
VALUES = {
    "model": st.sampled_from(["resnet20", "fcn5", "gpt2"]),
    "processes": st.lists(st.tuples(st.integers(1, 9), st.integers(1, 64)), min_size=1, max_size=3),
    "threads": st.lists(st.integers(1, 64), min_size=1, max_size=3, unique=True),
    "frameworks": st.lists(NAMES, min_size=1, max_size=3, unique=True),
    "instruments": st.lists(NAMES, min_size=1, max_size=3, unique=True),
    "hosts": st.lists(NAMES, min_size=1, max_size=3),
    "labs": st.lists(NAMES, min_size=1, max_size=2, unique=True),
    "launcher_options": st.lists(NAMES, min_size=1, max_size=2, unique=True),
    "data": st.sampled_from(["synthetic", "digits"]),
    "half_width": SHARES,
    "most_launches": st.integers(5, 1000),
    "target_accuracy": SHARES,
    "accuracy_margin": SHARES,
}
CROSSED = {"order", "block_by", "epochs", "factors", "design_kind", "generators", "runs"}


def value_of(name, knob):
    """Valid values of a setting."""
    if name in VALUES:
        return VALUES[name]
    if knob.knob.choices:
        return st.sampled_from([str(choice) for choice in knob.knob.choices])
    low, high = knob.knob.low, knob.knob.high
    if knob.kind is bool:
        return st.just(True)
    if knob.kind is int:
        return st.integers(low, high)
    if knob.kind is float or knob.knob.parse is not None:
        return st.floats(max(low or 0, 1e-6), min(high or 1e12, 1e12))
    return NAMES


SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        name: value_of(name, knob)
        for name, knob in knobs_of(StudyOptions).items()
        if name not in CROSSED
    },
)


def study_of(values):
    pairs = values.get("processes")
    if pairs is not None:
        values = {**values, "processes": [f"{n}x{p}" for n, p in pairs]}
    return StudySettings.of(**values)


@given(SETTINGS)
@settings(max_examples=60, deadline=None)
def test_a_study_is_equal_after_toml_json_and_arguments(values):
    study = study_of(values)
    if study.half_width is None and "most_launches" in values:
        return
    from_toml = read_document(parse_toml(toml_text(study_document(study)), "study.toml"))
    assert from_toml == study
    document = json.loads(json.dumps(study_document(from_toml)))
    from_json = read_document(parse_toml(toml_text(document), "study.toml"))
    assert from_json == study
    options = {name: getattr(from_json, name) for name in values if name not in FILE_ONLY}
    options |= {"processes": [f"{n}x{p}" for n, p in from_json.processes]}
    arguments = arguments_of(StudyOptions, {k: v for k, v in options.items() if v not in ("", ())})
    assert StudySettings.of(**parsed(arguments)) == study


UNITS = {
    **dict.fromkeys(("launch_seconds", "most_seconds"), "s"),
    **dict.fromkeys(("memory_bytes", "bucket_bytes"), "B"),
    **dict.fromkeys(("half_width", "target_accuracy", "accuracy_margin"), "%"),
}
"""Units that the command line requires."""


def parsed(arguments):
    """The keywords that a command with all options of a study receives."""
    received = {}

    @click.command()
    @options_of(StudyOptions, without=FILE_ONLY)
    def command(**options):
        received.update(options)

    for name, unit in UNITS.items():
        option = knobs_of(StudyOptions)[name].option
        if option in arguments:
            at = arguments.index(option) + 1
            number = float(arguments[at]) * (100 if unit == "%" else 1)
            arguments[at] = f"{number!r}{unit}"
    answer = CliRunner().invoke(command, arguments, standalone_mode=False)
    if answer.exception:
        raise answer.exception
    return {name: value for name, value in received.items() if value is not None}


def test_designs_are_equal_after_toml():
    for values in (
        {
            "factors": {"batch": [4, 8], "processes": ["1x1", 2]},
            "order": "blocked",
            "block_by": "batch",
        },
        {
            "factors": {"batch": [4, 8], "threads": [1, 2], "seq": [8, 9]},
            "design_kind": "fractional",
            "generators": ["seq = batch * threads"],
        },
        {"runs": [{"batch": 4}, {"batch": 8}], "design_kind": "list"},
    ):
        study = StudySettings.of(**values)
        assert (
            read_document(parse_toml(toml_text(study_document(study)), "study.toml")).points
            == study.points
        )


def test_every_default_of_the_help_is_that_of_the_settings():
    computed = {"seq", "launch_seconds", "memory_bytes", "launcher"}
    for name, knob in knobs_of(StudyOptions).items():
        if knob.knob.default and name not in computed:
            assert getattr(
                StudySettings.of(**{name: knob.read(knob.knob.default)}), name
            ) == getattr(StudySettings(), name), name
    assert {one.name for one in fields(StudySettings)} == set(knobs_of(StudyOptions))
    assert set(FACTORS.values()) <= set(knobs_of(StudyOptions))


def table_of(value):
    """The table of a dataclass, as a file has it."""
    document = {}
    for parts, name in keys_of(type(value)).items():
        found = plain(getattr(value, name))
        if found is not None:
            document[parts[0]] = found
    return document


def plain(value):
    if is_dataclass(value):
        return table_of(value)
    if isinstance(value, dict) or hasattr(value, "items"):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, tuple | list):
        return [plain(one) for one in value]
    return str(value) if not isinstance(value, bool | int | float | type(None)) else value


def read_again(kind, document, value):
    root = parse_toml(toml_text(document), "file.toml")
    problems = Problems(root)
    own = {
        one.name: getattr(value, one.name)
        for one in fields(kind)
        if mark_of(hints_of(kind)[one.name]).key is None
    }
    found = read_table(root, kind, problems, **own)
    problems.check()
    return found


def strategy_of(hint):
    """Valid values of a field of a file."""
    mark, kind = mark_of(hint), bare(hint)
    if mark.choices and not is_mapping(kind):
        return st.sampled_from([one for one in mark.choices if one])
    if is_mapping(kind):
        keys = st.sampled_from(mark.choices) if mark.choices else NAMES
        return st.dictionaries(keys, strategy_of(kind.__args__[1]), max_size=3)
    if getattr(kind, "__origin__", None) in (tuple, frozenset):
        return st.builds(kind.__origin__, st.lists(strategy_of(kind.__args__[0]), max_size=3))
    if kind is float:
        return st.floats(1e6, 1e15)
    if kind is int:
        return st.integers(int(mark.low or 0), int(mark.high or 100))
    if kind is bool:
        return st.booleans()
    return st.text(max_size=8) if kind is str else st.from_type(kind)


@pytest.mark.parametrize("kind", [Device, Link, ClusterTable, Provenance])
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_hardware_tables_are_equal_after_toml_and_json(kind, data):
    skipped = {"matrix_precisions", "attainable_flops", "collective_bandwidth", "provenance"}
    values = {
        name: data.draw(strategy_of(hint), label=name)
        for name, hint in hints_of(kind).items()
        if name not in skipped
    }
    value = kind(**values)
    found = read_again(kind, table_of(value), value)
    assert found == value
    assert read_again(kind, json.loads(json.dumps(table_of(found))), value) == value


def test_catalogue_and_manifests_are_equal_after_toml_and_json():
    entries = [*shipped().devices.values(), *shipped().links.values()]
    entries += framework_registry.recipes().values()
    for value in entries:
        found = read_again(type(value), json.loads(json.dumps(table_of(value))), value)
        assert found == value
