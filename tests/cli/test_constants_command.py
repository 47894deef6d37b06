"""paceline constants: a list, a part of it, one in full."""

import json

from click.testing import CliRunner

from paceline.cli.main import cli
from paceline.constants import shipped_constants
from paceline.errors import PacelineError


def run(*arguments):
    return CliRunner().invoke(cli, ["constants", *arguments])


def test_the_list_has_every_constant_with_its_status():
    found = json.loads(run("--json").stdout)
    assert found["schema"] == "paceline/constants/1"
    assert {one["name"] for one in found["constants"]} == set(shipped_constants())
    assert {one["status"] for one in found["constants"]} == {"fact", "prior", "fitted"}


def test_the_beginning_of_names_and_a_status_choose_a_part():
    listed = run("libraries.gloo.efficiency", "--status", "prior").stdout
    assert "libraries.gloo.efficiency.tcp" in listed
    assert "openmpi" not in listed


def test_one_constant_says_where_it_is_from_and_what_it_moves():
    shown = run("kernels.matrix.ceiling").stdout
    assert "kernels.matrix.ceiling = 1.075 fraction" in shown
    assert "1,600 products" in shown
    assert "gpt3_175b" in shown
    found = json.loads(run("kernels.matrix.ceiling", "--json").stdout)
    assert (found["value"], found["status"], found["factor"]) == (1.075, "fitted", 1.1)
    cases = {case["case"]["model"]: case for case in found["moves"]}
    assert cases["gpt3_175b"]["changed_step_seconds"] < cases["gpt3_175b"]["step_seconds"]


def test_a_constant_that_no_case_uses_says_so():
    assert "No standard case changes" in run("spread.model_error.here").stdout


def test_mistakes_come_with_a_hint():
    for arguments, message in (
        (("kernels.matrix.ceilng",), "Did you mean kernels.matrix.ceiling"),
        (("spread", "--status", "fact"), "spread has no constants with status fact"),
    ):
        error = run(*arguments).exception
        assert isinstance(error, PacelineError)
        assert message in error.message
        assert error.hint
