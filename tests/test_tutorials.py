"""The commands of each tutorial run as printed, in an empty directory."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
TUTORIALS = {
    path.stem: path
    for path in (DOCS / "start" / "first-run.md", *(DOCS / "guides" / "tutorials").glob("*.md"))
}
TRAINING = {"first-run", "own-script", "framework-comparison"}
"""Tutorials that train a network and take minutes."""
WRITTEN = {
    "first-run": ("first/report.html", "launches.csv"),
    "own-script": ("mine.html", "figures/figures.tex"),
    "which-network": ("links.pdf",),
    "plan-70b": ("step.svg", "step.json"),
    "framework-comparison": ("ranking.pdf", "comparison.html", "figures/figures.tex"),
    "slurm": ("prepared",),
}


def names():
    marks = {True: [pytest.mark.slow, pytest.mark.torch], False: []}
    found = sorted(TUTORIALS)
    return [pytest.param(name, marks=marks[name in TRAINING]) for name in found]


def run(line, directory):
    here = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    here.pop("PACELINE_STORE", None)
    return subprocess.run(
        ["bash", "-c", line], cwd=directory, env=here, capture_output=True, text=True, timeout=900
    )


@pytest.mark.parametrize("name", names())
def test_a_tutorial_runs_as_printed(name, tmp_path):
    text = TUTORIALS[name].read_text()
    for file, content in re.findall(r"```\w+ file=(\S+)\n(.*?)```", text, re.DOTALL):
        (tmp_path / file).write_text(content)
    lines = [
        line
        for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
        for line in block.replace("\\\n", " ").splitlines()
    ]
    assert lines
    for line in lines:
        done = run(line, tmp_path)
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
        assert done.stdout.strip(), line
    for path in WRITTEN[name]:
        assert (tmp_path / path).exists(), path
