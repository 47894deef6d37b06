"""Balance, orthogonality and aliases of designs; aliases as printed by pydoe 1.6."""

import itertools

import pytest

from paceline.errors import InputError, UnknownNameError
from paceline.stats.designs import aliases, design_points, resolution

TWO = {name: [-1, 1] for name in "abcde"}


def test_every_combination_once():
    levels = {"a": [1, 2], "b": ["x", "y", "z"]}
    points = design_points("full", levels)
    assert [tuple(point.values()) for point in points] == list(itertools.product(*levels.values()))
    assert design_points("full", {}) == [{}]


def test_a_fraction_is_balanced_and_generated_as_written():
    points = design_points("fractional", TWO, ["d = a * b", "e = a*c"])
    assert len(points) == 8
    assert all(point["d"] == point["a"] * point["b"] for point in points)
    assert all(point["e"] == point["a"] * point["c"] for point in points)
    for first, second in itertools.combinations("abcde", 2):
        assert sum(point[first] * point[second] for point in points) == 0
    assert sum(point["e"] for point in points) == 0


def test_aliases_are_those_of_the_defining_relation():
    generators = ["d = a * b", "e = a * c"]
    assert aliases(TWO, generators) == [
        [("a",), ("b", "d"), ("c", "e")],
        [("b",), ("a", "d")],
        [("c",), ("a", "e")],
        [("d",), ("a", "b")],
        [("e",), ("a", "c")],
        [("b", "c"), ("d", "e")],
        [("b", "e"), ("c", "d")],
    ]
    assert resolution(TWO, generators) == 3
    assert resolution(TWO, ["e = a * b * c * d"]) == 5


def test_one_factor_at_a_time_leaves_the_others_at_their_first_level():
    points = design_points("one-at-a-time", {"a": [1, 2, 3], "b": ["x", "y"]})
    assert [tuple(point.values()) for point in points] == [(1, "x"), (2, "x"), (3, "x"), (1, "y")]


@pytest.mark.parametrize("size", [2, 3, 5])
def test_a_latin_square_has_each_level_once_in_rows_and_columns(size):
    levels = {name: list(range(size)) for name in ("row", "column", "third")}
    points = design_points("latin-square", levels, seed=3)
    assert len(points) == size**2
    for one in range(size):
        for axis in ("row", "column"):
            own = [point["third"] for point in points if point[axis] == one]
            assert sorted(own) == list(range(size))
    assert points == design_points("latin-square", levels, seed=3)


@pytest.mark.parametrize(
    ("kind", "levels", "generators", "message"),
    [
        ("two-level", {"a": [1, 2, 3]}, [], "a has 3 levels, but this design needs two"),
        ("latin-square", {"a": [1, 2], "b": [1, 2]}, [], "needs three factors"),
        ("fractional", TWO, [], "needs generators"),
        ("fractional", TWO, ["d a b"], "invalid generator 'd a b'"),
        ("fractional", TWO, ["d = a * z"], "no factor named 'z'"),
        ("fractional", TWO, ["d = a * d"], "a product of factors that are not generated"),
        ("full", TWO, ["d = a * b"], "takes no generators"),
        ("ful", TWO, [], r"no design named 'ful'\. Did you mean full"),
        ("full", {"a": list(range(1000)), "b": list(range(1000))}, [], "more than 100,000"),
    ],
)
def test_impossible_designs_are_refused(kind, levels, generators, message):
    with pytest.raises((InputError, UnknownNameError), match=message):
        design_points(kind, levels, generators)
