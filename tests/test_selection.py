"""Which tests each tier runs."""

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
    """A function from options to the names of the tests that would run."""
    for name in ("conftest.py", "installation.py"):
        shutil.copy(HERE / name, tmp_path)
    (tmp_path / "test_all.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  slow\n  framework\n")

    def collect(*options):
        command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        said = subprocess.run(
            [*command, *options], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        return set(re.findall(r"::(\S+)", said.stdout))

    return collect


def test_slow_tests_and_builds_run_with_all_only(chosen):
    assert chosen() == {"test_quick"}
    assert chosen("--frameworks") == {"test_quick", "test_framework"}
    assert len(chosen("--all")) == 44
