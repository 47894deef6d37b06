"""The seed chooses which slow tests run: every one has its turn, and a seed can be repeated."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TESTS = """
import pytest

def test_quick(): pass

@pytest.mark.slow
@pytest.mark.parametrize("number", range(40))
def test_slow(number): pass

@pytest.mark.framework("jax")
def test_framework(): pass

BUILDS = ["first", "second"]

@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.framework(name, builds=BUILDS)) for name in BUILDS],
)
def test_build(name): pass
"""


@pytest.fixture
def chosen(tmp_path):
    """A function from options and a seed to the names of the tests that would run."""
    for name in ("conftest.py", "installation.py"):
        shutil.copy(HERE / name, tmp_path)
    (tmp_path / "test_all.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  slow\n  framework\n")

    def collect(*options, seed=""):
        command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
        environment = {**os.environ, "PACELINE_TEST_SEED": str(seed), "PYTHONPATH": str(tmp_path)}
        said = subprocess.run(
            [*command, *options], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        return set(re.findall(r"::(\S+)", said.stdout))

    return collect


def test_five_seeds_run_every_slow_test_once_and_one_build_each(chosen):
    runs = [chosen("--frameworks", "--builds", seed=seed) for seed in range(5)]
    slow = [{name for name in run if "slow" in name} for run in runs]
    assert all(slow)
    assert sum(map(len, slow)) == len(set.union(*slow)) == 40
    for seed, run in enumerate(runs):
        build = "test_build[second]" if seed % 2 else "test_build[first]"
        assert run - slow[seed] == {"test_quick", "test_framework", build}


def test_frameworks_run_only_where_they_are_asked_for(chosen):
    quick = {name for name in chosen() if "slow" not in name}
    assert quick == {"test_quick"}
    assert "test_build[first]" not in chosen("--frameworks", seed=0)
    assert len(chosen("--all")) == 44
