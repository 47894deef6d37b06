"""Recipes: data that holds together, and templates that fill in."""

import pytest

from paceline.errors import InputError, UnknownNameError
from paceline.frameworks.framework_registry import recipe, recipes
from paceline.frameworks.program_recipe import fill, placeholders
from paceline.importers.logs import readers


def test_every_recipe_names_an_existing_reader():
    assert {recipe.reader for recipe in recipes().values()} <= readers().keys()


@pytest.mark.parametrize("name", sorted(recipes()))
def test_a_recipe_explains_every_placeholder_of_its_command(name: str):
    one = recipe(name)
    assert placeholders(one.command) == list(dict.fromkeys(placeholders(one.command)))
    assert set(placeholders(one.command)) == one.placeholders.keys()
    assert one.install
    assert one.comparable
    assert one.log_contains
    assert one.log_lacks


def test_filling_a_template_in():
    assert fill("mpirun -np {ranks} x{{y}}", {"ranks": 4, "batch": 1}) == "mpirun -np 4 x{y}"


def test_a_missing_value_is_named():
    with pytest.raises(InputError, match=r"\{batch\}") as raised:
        fill("run {ranks} {batch}", {"ranks": 2})
    assert "--set batch=" in raised.value.hint


def test_a_broken_template_is_an_error_for_the_user():
    with pytest.raises(InputError, match="template"):
        placeholders("run {ranks")


def test_a_misspelt_recipe_suggests_the_nearest():
    with pytest.raises(UnknownNameError, match="pydtnn"):
        recipe("pydtn")
