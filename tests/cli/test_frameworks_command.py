import json
import sys

import pytest
from click.testing import CliRunner

from paceline.cli.main import cli
from paceline.errors import EnvironmentUnusableError, UnknownNameError


@pytest.fixture(autouse=True)
def _environments(tmp_path, monkeypatch):
    monkeypatch.setenv("PACELINE_ENVIRONMENTS", str(tmp_path / "environments"))
    monkeypatch.delenv("PACELINE_CHAINER_PYTHON", raising=False)


def run(*words):
    return CliRunner().invoke(cli, ["frameworks", *words], catch_exceptions=False)


def test_the_list_shows_states_and_a_next_command():
    printed = run().output
    assert "torch-ddp" in printed
    assert "not installed" in printed
    assert "Next: paceline frameworks install" in printed


def test_the_list_as_json():
    document = json.loads(run("--json").output)
    assert document["schema"] == "paceline/frameworks/2"
    rows = {row["name"]: row for row in document["frameworks"]}
    assert rows["chainer"]["state"] == "not installed"
    assert rows["chainer"]["size_bytes"] is None


def test_an_interpreter_of_the_users_own_must_have_the_framework():
    with pytest.raises(EnvironmentUnusableError, match="cannot import 'chainer'"):
        run("use", "chainer", "--interpreter", sys.executable)
    assert "your own" not in run().output
    printed = run("use", "torch-ddp", "--interpreter", sys.executable).output
    assert f"torch-ddp runs in {sys.executable}" in printed


def test_removing_a_framework_that_is_not_installed_is_harmless():
    assert "chainer: was not installed" in run("remove", "chainer").output


def test_an_unknown_framework_gets_suggestions():
    with pytest.raises(UnknownNameError, match=r"Did you mean .*chainer"):
        run("install", "chainr")
