"""Knobs: one declaration gives keywords, options, checks, arguments and documentation."""

import inspect
import json
import tomllib
from dataclasses import dataclass
from typing import Annotated, TypedDict

import click
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import paceline as pl
from paceline.cli.help_sections import SectionedCommand
from paceline.cli.knob_options import options_of
from paceline.errors import InputError
from paceline.spec.job_options import JobArguments, JobLists, JobOptions
from paceline.spec.knob import Knob, arguments_of, check_options, knobs_of
from paceline.spec.search_options import SearchOptions, SweepOptions
from paceline.spec.training_options import TrainingOptions
from paceline.units import parse_bytes
from toml_writer import toml_text

SPECS = (JobArguments, JobOptions, SweepOptions, TrainingOptions, SearchOptions)


class Example(TypedDict, total=False):
    """An example of every kind of knob."""

    size: Annotated[int | None, Knob("Size.", group="First", low=1, high=9)]
    ratio: Annotated[float | None, Knob("Ratio.", group="Second", low=0, high=1)]
    kind: Annotated[str | None, Knob("Kind.", group="First", choices=("ring", "tree"))]
    bucket: Annotated[str | float | None, Knob("Bucket.", parse=parse_bytes, metavar="BYTES")]
    fused: Annotated[bool | None, Knob("Fused.", negative=True)]
    lists: Annotated[int | None, Knob("Several.", several=True)]


@dataclass(frozen=True)
class ExampleFile:
    """A dataclass with a knob and a plain field."""

    size: Annotated[int, Knob("Size.", low=1)] = 3
    plain: str = ""


def test_a_dataclass_declares_knobs_with_defaults():
    assert list(knobs_of(ExampleFile)) == ["size"]
    assert knobs_of(ExampleFile)["size"].default == 3


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("size", 10, "size must be an integer from 1 to 9 (got 10)"),
        ("size", "4", "size must be an integer from 1 to 9 (got '4')"),
        ("size", True, "size must be an integer from 1 to 9 (got True)"),
        ("size", 1.5, "size must be an integer"),
        ("ratio", float("nan"), "ratio must be a number from 0 to 1 (got nan)"),
        ("ratio", "0.5", "ratio must be a number"),
        ("kind", "rng", "kind must be one of ring, tree (got 'rng')"),
        ("kind", 3, "kind must be text (got 3)"),
        ("bucket", "25", "bucket: the size '25' has no unit"),
        ("bucket", {}, "bucket must be"),
        ("fused", 1, "fused must be true or false (got 1)"),
        ("lists", [], "lists is an empty list"),
        ("lists", [1, "x"], "lists must be an integer (got 'x')"),
        ("sise", 3, "f has no option 'sise'. Did you mean size?"),
    ],
)
def test_a_wrong_value_is_one_error_with_the_name(name, value, message):
    with pytest.raises(InputError) as caught:
        check_options(Example, {name: value}, "f")
    assert message in caught.value.message
    assert caught.value.hint


def test_checked_values_are_in_si_units_and_none_is_not_given():
    found = check_options(Example, {"bucket": "1KiB", "size": None, "lists": [1, 2]}, "f")
    assert found == {"bucket": 1024.0, "lists": [1, 2]}
    assert check_options(Example, found, "f") == found


def parsed(spec, arguments):
    """The options that a command receives, without those not given."""
    found = {}

    @click.command(cls=SectionedCommand)
    @options_of(spec)
    def command(**options):
        found.update({name: value for name, value in options.items() if value is not None})

    result = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return found


def values_of(knob):
    """Values of a knob as keywords have them after the command line or JSON."""
    low, high = knob.knob.low, knob.knob.high
    choices = [str(choice) for choice in knob.knob.choices]
    if knob.kind is bool:
        return st.booleans() if knob.has_negation else st.just(True)
    if knob.kind is int:
        one = st.integers(low or 1, high or 10**6)
    elif knob.kind is float:
        one = st.floats(low or 0, high or 1e6, allow_nan=False)
    elif choices:
        one = st.sampled_from(choices)
    elif knob.name in ("topology", "measured_on"):
        one = st.integers(1, 64).map(lambda nodes: f"{nodes}x8")
    elif knob.name == "scale":
        one = st.integers(1, 9).map(lambda factor: f"flops={factor},link=0.5")
    elif knob.knob.parse is not None:
        unit = {
            "BYTES": "MiB",
            "DURATION": "ms",
            "COUNT": "M",
            "AMOUNT": "k",
            "N|TOKENS[,...]": "Mtok",
        }[knob.knob.metavar]
        one = st.integers(1, 999).map(lambda number: f"{number}{unit}")
    else:
        one = st.from_regex(r"[a-z][a-z0-9_.:]{0,12}", fullmatch=True)
    if knob.knob.repeated:
        return st.lists(one, min_size=1, max_size=3)
    return one | st.lists(one, min_size=2, max_size=3, unique=True) if knob.knob.several else one


@pytest.mark.parametrize("spec", SPECS)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_arguments_keywords_toml_and_json_are_the_same_options(spec, data):
    known = knobs_of(spec)
    names = data.draw(st.lists(st.sampled_from(sorted(known)), unique=True, max_size=8))
    options = {name: data.draw(values_of(known[name]), name) for name in names}
    arguments = arguments_of(spec, options)
    from_arguments = parsed(spec, arguments)
    assert from_arguments == options
    from_toml = tomllib.loads(toml_text(from_arguments))
    assert from_toml == options
    from_json = json.loads(json.dumps(from_toml))
    assert from_json == options
    assert arguments_of(spec, from_json) == arguments
    assert check_options(spec, from_json, "f").keys() == options.keys()


def test_help_lists_options_by_group_with_defaults_and_choices():
    @click.command(cls=SectionedCommand)
    @options_of(Example)
    def command(**options):
        pass

    text = CliRunner().invoke(command, ["--help"]).output
    assert text.index("First:") < text.index("--kind") < text.index("Second:")
    assert "[ring|tree]" in text
    assert "--no-fused" in text and "--fused " not in text


def test_every_knob_has_a_group_and_a_sentence():
    for spec in SPECS:
        for name, knob in knobs_of(spec).items():
            assert knob.knob.group, name
            assert knob.knob.help[0].isupper() and len(knob.knob.help) < 120, name


@pytest.mark.parametrize("name", ["predict", "whatif", "bandwidth_for", "sweep", "advise"])
def test_signatures_and_docstrings_list_the_keywords(name):
    function = getattr(pl, name)
    spec = SweepOptions if name == "sweep" else JobOptions
    parameters = inspect.signature(function).parameters
    assert set(knobs_of(spec)) <= set(parameters)
    assert parameters["lora"].annotation == (int | None)
    for keyword in knobs_of(spec):
        assert f"\n    {keyword}: " in inspect.getdoc(function), keyword


def test_lists_and_single_values_declare_the_same_knobs():
    singles, lists = knobs_of(JobOptions), knobs_of(JobLists)
    assert {name: knob.knob for name, knob in singles.items()} == {
        name: knob.knob for name, knob in lists.items()
    }


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("inputs", "input"),
        ("cards", "nics"),
        ("context_form", "cp_impl"),
        ("curve", "allreduce_curve"),
        ("optimiser", "optimizer"),
        ("optimiser_state", "optimizer_state"),
    ],
)
def test_a_keyword_of_version_0_1_is_answered_with_the_present_one(before, now):
    with pytest.raises(InputError) as caught:
        pl.predict("resnet50", "dgx-1", **{before: 1})
    assert caught.value.hint == f"use {now}"
