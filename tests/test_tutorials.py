"""The commands of each tutorial run as printed, in a directory of their own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TUTORIALS = Path(__file__).parents[1] / "docs" / "tutorials"
TRAINING = {"first-run", "own-script", "framework-comparison"}
"""Those that train, which takes minutes."""
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
    found = sorted(path.stem for path in TUTORIALS.glob("*.md"))
    return [pytest.param(name, marks=marks[name in TRAINING]) for name in found]


def run(line, directory):
    here = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    here.pop("PACELINE_STORE", None)
    return subprocess.run(
        ["bash", "-c", line], cwd=directory, env=here, capture_output=True, text=True, timeout=900
    )


@pytest.mark.parametrize("name", names())
def test_a_tutorial_runs_as_printed(name, tmp_path):
    text = (TUTORIALS / f"{name}.md").read_text()
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


def test_every_tutorial_is_in_the_index():
    index = (TUTORIALS.parent / "index.md").read_text()
    for path in TUTORIALS.glob("*.md"):
        assert f"(tutorials/{path.name})" in index
