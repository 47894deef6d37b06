"""The reader of TOML files: types of values, and lines of errors."""

from dataclasses import dataclass
from typing import Annotated

import pytest

from paceline import located_toml, units
from paceline.errors import InputError
from paceline.file_errors import Problems
from paceline.file_keys import COUNT, Key, quantity
from paceline.located_toml import line_of, parse_toml, read_toml, shipped_toml
from paceline.typed_toml import read_file

STUDY = """\
title = "a study"   # of two runs
launches = 3

[network]
latency = "5us"
curve = [1, 2.5]

[[run]]
name = "first"
[run.limits]
seconds = 10

[[run]]
name = "second"
[run.limits]
seconds = "long"
"""


@dataclass(frozen=True)
class Limits:
    seconds: Annotated[float, quantity(units.parse_seconds)]


@dataclass(frozen=True)
class Run:
    name: str
    limits: Limits


@dataclass(frozen=True)
class Network:
    latency_seconds: Annotated[float, quantity(units.parse_seconds, "latency")]
    curve: tuple[float, ...] = ()


@dataclass(frozen=True)
class Plan:
    title: str
    launches: Annotated[int, COUNT]
    network: Network
    runs: Annotated[tuple[Run, ...], Key(key="run")] = ()
    note: Annotated[str, Key(choices=("", "short"))] = ""


def study(*changes):
    text = STUDY.replace('"long"', "2")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return read_file(parse_toml(text, "study.toml"), Plan)


def test_values_have_the_types_of_the_declaration():
    plan = study()
    assert plan.title == "a study"
    assert plan.launches == 3
    assert plan.network == Network(pytest.approx(5e-6), (1.0, 2.5))
    assert [(run.name, run.limits.seconds) for run in plan.runs] == [("first", 10), ("second", 2)]


@pytest.mark.parametrize(
    ("change", "message", "hint"),
    [
        (("launches", "launchs"), "line 2: unknown key 'launchs'", "'launches'"),
        (("launches = 3", ""), "missing key 'launches'", "add launches"),
        (("[network]", "[[network]]"), "line 4: network must be a table", "[network] above"),
        (('"a study"', "5"), "line 1: title must be a string, not 5", "title ="),
        (("2.5", '"2"'), "line 6: curve must be a list of numbers", "[2.5, 2.5]"),
        (("2.5", "nan"), "line 6: curve must be a list of numbers", "[2.5, 2.5]"),
        (('name = "second"', "name = true"), "line 14: name must be a string, not True", "name"),
        (("seconds = 2", 'seconds = "no"'), "line 16: seconds: 'no' is not a duration", "5min"),
        (("seconds = 2", "second = 2"), "line 16: unknown key 'second'", "'seconds'"),
        (("launches = 3", 'launches = 3\nnote = "no"'), "line 3: invalid note 'no'", "short"),
        (
            ("launches = 3", "launches = 1.5"),
            "line 2: launches must be an integer between",
            "give an integer",
        ),
    ],
)
def test_an_error_has_its_line_and_a_hint(change, message, hint):
    with pytest.raises(InputError) as caught:
        study(change)
    assert message in caught.value.message
    assert hint in caught.value.hint
    assert len(caught.value.problems) == 1


def test_all_errors_are_reported_in_the_order_of_lines():
    with pytest.raises(InputError) as caught:
        study(("seconds = 2", "seconds = true"), ("launches = 3", "launches = 0"))
    assert [message.split(":")[0] for message, _ in caught.value.problems] == [
        "study.toml, line 2",
        "study.toml, line 16",
    ]


def test_errors_of_other_checks_get_the_line_of_their_key():
    problems = Problems(parse_toml(STUDY, "study.toml"))
    with problems.at("network"):
        raise InputError("no such network")
    with pytest.raises(InputError, match=r"study.toml, line 4: no such network"):
        problems.check()


def test_lines_are_those_of_the_entry_of_an_array():
    assert line_of(STUDY, ("run", 0, "limits"), "seconds") == 11
    assert line_of(STUDY, ("run", 1), "name") == 14
    assert line_of(STUDY, ("run", 1, "limits")) == 15


def test_a_file_of_the_package_and_a_file_that_is_not_there(tmp_path):
    assert shipped_toml("data", "hardware", "links.toml").table("link").values
    with pytest.raises(InputError, match=r"cannot read .*none.toml: No such file"):
        read_toml(tmp_path / "none.toml")


def test_values_of_a_packaged_file_are_cached_beside_the_bytecode(tmp_path, monkeypatch):
    monkeypatch.setattr(located_toml, "PACKAGE", tmp_path)
    monkeypatch.setattr("sys.pycache_prefix", str(tmp_path / "cache"))
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    (tmp_path / "one.toml").write_text("a = 1\nb = [2.5, inf]\n")
    first = located_toml.shipped_toml("one.toml")
    monkeypatch.setattr("tomllib.loads", None)
    assert located_toml.shipped_toml("one.toml") == first
    assert first.values == {"a": 1, "b": [2.5, float("inf")]}


@pytest.mark.parametrize("damage", ["", "{}", '{"text": 1}', "no JSON"])
def test_a_changed_file_or_a_damaged_cache_is_parsed_again(tmp_path, monkeypatch, damage):
    monkeypatch.setattr(located_toml, "PACKAGE", tmp_path)
    monkeypatch.setattr("sys.pycache_prefix", str(tmp_path / "cache"))
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    (tmp_path / "one.toml").write_text("a = 1\n")
    located_toml.shipped_toml("one.toml")
    (cached,) = (tmp_path / "cache").rglob("*.json")
    cached.write_text(damage)
    assert located_toml.shipped_toml("one.toml").values == {"a": 1}
    (tmp_path / "one.toml").write_text("a = 2\n")
    assert located_toml.shipped_toml("one.toml").values == {"a": 2}


def test_nothing_is_cached_if_python_writes_no_bytecode(tmp_path, monkeypatch):
    monkeypatch.setattr(located_toml, "PACKAGE", tmp_path)
    monkeypatch.setattr("sys.pycache_prefix", str(tmp_path / "cache"))
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    (tmp_path / "one.toml").write_text("a = 1\n")
    assert located_toml.shipped_toml("one.toml").values == {"a": 1}
    assert not list(tmp_path.rglob("*.json"))
