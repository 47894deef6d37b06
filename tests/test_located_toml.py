"""The TOML reader: what each value has to be, and where a mistake is said to stand."""

import pytest

from paceline import units
from paceline.errors import InputError
from paceline.located_toml import line_of, parse_toml, read_toml, shipped_toml

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


def study(old="", new=""):
    return parse_toml(STUDY.replace(old, new, 1), "study.toml")


def test_values_come_as_what_they_have_to_be():
    root = study()
    assert root.text_of("title") == "a study"
    assert root.count("launches") == 3
    assert root.table("network").parsed("latency", units.parse_seconds) == pytest.approx(5e-6)
    assert root.table("network").numbers("curve") == [1.0, 2.5]
    assert [run.text_of("name") for run in root.array("run")] == ["first", "second"]


def test_what_is_absent_is_empty():
    empty = study().table("absent")
    assert (empty.values, empty.array("run"), empty.names("x")) == ({}, [], [])
    assert empty.parsed("x", float) is None


@pytest.mark.parametrize(
    ("change", "read", "message", "hint"),
    [
        (("launches", "launchs"), lambda r: r.check_keys(KEYS), "line 2: unknown key", "'launches"),
        (
            ("launches = 3", ""),
            lambda r: r.check_keys(KEYS, KEYS),
            "missing key 'launches'",
            "add",
        ),
        (
            ("[network]", "[[network]]"),
            lambda r: r.table("network"),
            "line 4: network must be",
            "above",
        ),
        (
            ("", ""),
            lambda r: r.table("title"),
            "line 1: title must be a table, not 'a study'",
            "[title]",
        ),
        (("", ""), lambda r: r.tables(), "line 1: title must be", "above"),
        (("", ""), lambda r: r.array("network"), "line 4: network must be", "[[network]]"),
        (("2.5", '"2"'), lambda r: r.table("network").numbers("curve"), "line 6: curve", "[1.0"),
        (("2.5", "nan"), lambda r: r.table("network").numbers("curve"), "line 6: curve", "[1.0"),
        (
            ("", ""),
            lambda r: r.array("run")[1].table("limits").parsed("seconds", float),
            "line 16: seconds must be a number, not 'long'",
            "without a unit",
        ),
    ],
)
def test_error_has_the_line_and_a_hint(change, read, message, hint):
    with pytest.raises(InputError) as caught:
        read(study(*change))
    assert message in caught.value.message
    assert hint in caught.value.hint


KEYS = ("title", "launches", "network", "run")


def test_an_error_of_elsewhere_gets_the_place_of_its_key_and_keeps_one_it_has():
    root = study()
    with (
        pytest.raises(InputError, match=r"study.toml, line 4: no such network"),
        root.locating("network"),
    ):
        raise InputError("no such network")
    with (
        pytest.raises(InputError, match=r"^study.toml, line 5: latency of '5us' is odd"),
        root.locating("title"),
    ):
        root.table("network").fail("latency", "latency of '5us' is odd", "")


def test_lines_are_those_of_the_entry_of_an_array():
    assert line_of(STUDY, ("run", 0, "limits"), "seconds") == 11
    assert line_of(STUDY, ("run", 1), "name") == 14
    assert line_of(STUDY, ("run", 1, "limits")) == 15


def test_a_file_of_the_package_and_a_file_that_is_not_there(tmp_path):
    assert shipped_toml("data", "hardware", "links.toml").table("link").values
    with pytest.raises(InputError, match=r"cannot read .*none.toml: No such file"):
        read_toml(tmp_path / "none.toml")
