"""A framework of another package: found by its entry point, listed, held to the contract, measured.

``tests/fixtures/plugins/plain_framework`` is such a package.
"""

import json
import subprocess
import sys

import pytest
from plugin_packages import install

CONTRACT = """
from paceline.testing.adapter_suite import QUICK, run_suite
names = ("parameters", "losses", "synchronisation", "phases", "crash", "out of memory")
for result in run_suite("plain-numpy", {name: QUICK[name] for name in names}):
    assert result.passed, result
    print(result.check, result.message)
"""


@pytest.fixture
def installed(tmp_path):
    """Variables of a process that has the package installed."""
    environment = install(tmp_path / "site", "plain_framework")
    return {**environment, "PACELINE_STORE": str(tmp_path / "store.db")}


def run(installed, *arguments):
    ended = subprocess.run(
        [sys.executable, *arguments], env=installed, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_it_is_listed(installed):
    listed = json.loads(run(installed, "-m", "paceline", "frameworks", "--json"))["frameworks"]
    (ours,) = [one for one in listed if one["name"] == "plain-numpy"]
    assert (ours["state"], ours["path"]) == ("in Paceline's Python", sys.executable)


def test_it_is_measured_and_predicted(installed):
    job = ("--framework", "plain-numpy", "--model", "fcn5", "--batch", "4", "--json")
    measured = json.loads(
        run(installed, "-m", "paceline", "measure", *job, "--steps", "2", "--launches", "1")
    )
    (launch,) = measured["launches"]
    assert launch["status"] == "finished"
    assert launch["framework"] == "plain-numpy"
    predicted = run(installed, "-m", "paceline", "predict", *job, "--cluster", "dgx-1")
    assert "plain-numpy" in predicted


@pytest.mark.slow
def test_it_keeps_the_contract(installed):
    assert "losses 5 losses within" in run(installed, "-c", CONTRACT)
