"""A framework of another package: found by its entry point, listed, held to the contract, measured.

``tests/fixtures/thirdparty_framework`` is such a package; what pip would write when it installs it
is written here.
"""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import paceline

PACKAGE = Path(__file__).parents[1] / "fixtures" / "thirdparty_framework"
CONTRACT = """
from paceline.testing.adapter_suite import QUICK, run_suite
names = ("parameters", "losses", "synchronisation", "phases", "crash", "out of memory")
for result in run_suite("plain-numpy", {name: QUICK[name] for name in names}):
    assert result.passed, result
    print(result.check, result.words)
"""


@pytest.fixture
def installed(tmp_path):
    """Variables of a process that has the package installed."""
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    ((group, points),) = project["entry-points"].items()
    about = tmp_path / "site" / "paceline_plain-1.0.dist-info"
    about.mkdir(parents=True)
    about.joinpath("METADATA").write_text(f"Name: {project['name']}\nVersion: 1.0\n")
    lines = [f"[{group}]", *(f"{name} = {target}" for name, target in points.items())]
    about.joinpath("entry_points.txt").write_text("\n".join(lines))
    path = [about.parent, PACKAGE, Path(paceline.__file__).parents[1]]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, path)),
        "PACELINE_STORE": str(tmp_path / "store.db"),
    }


def run(installed, *arguments):
    ended = subprocess.run(
        [sys.executable, *arguments], env=installed, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_it_is_listed(installed):
    listed = json.loads(run(installed, "-m", "paceline", "frameworks", "--json"))["frameworks"]
    (ours,) = [one for one in listed if one["name"] == "plain-numpy"]
    assert (ours["state"], ours["place"]) == ("in Paceline's Python", sys.executable)


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
