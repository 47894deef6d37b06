"""``paceline worker``: what it is started with decides which ranks it runs."""

import os
import subprocess
import sys

import pytest
from measurement import quick

from paceline.launch.launch_files import rank_status
from paceline.measurement.dry_run import prepare_study
from paceline.measurement.study_runner import Design

ENGINES = ("SLURM_", "OMPI_", "PMI_", "PMIX_", "TORCHELASTIC_", "RANK", "WORLD_SIZE", "JOB_COMP")


def start(directory, **variables):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(ENGINES)}
    words = [sys.executable, "-m", "paceline", "worker", str(directory)]
    return subprocess.Popen(
        words,
        env={**clean, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.fixture
def launch(tmp_path, quick_framework):
    design = Design.randomised([quick.job(world_size=2, nodes=2)], 1, 1)
    prepare_study(design, "s", tmp_path / "p", 60.0)
    return tmp_path / "p" / "launch-0000"


@pytest.mark.parametrize(
    "variables",
    [
        {"SLURM_PROCID": "{}", "SLURM_NTASKS": "2", "SLURM_JOB_ID": "1"},
        {"OMPI_COMM_WORLD_RANK": "{}", "OMPI_COMM_WORLD_SIZE": "2"},
        {"PMI_RANK": "{}", "PMI_SIZE": "2"},
        {"PMIX_RANK": "{}"},
        {"RANK": "{}", "WORLD_SIZE": "2"},
        {"JOB_COMPLETION_INDEX": "{}"},
    ],
)
def test_ranks_find_their_part_and_each_other(launch, variables):
    started = [
        start(launch, **{name: value.format(rank) for name, value in variables.items()})
        for rank in (0, 1)
    ]
    for process in started:
        assert process.wait(60) == 0, process.stdout.read()
    assert [rank_status(launch, rank).code for rank in (0, 1)] == [0, 0]


def test_a_process_that_nobody_numbered_is_told_how_to_start(launch):
    process = start(launch)
    told, _ = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "the rank is unknown" in told
    assert "hint:" in told


def test_a_directory_without_a_launch_is_refused(tmp_path):
    process = start(tmp_path, RANK="0", WORLD_SIZE="1")
    told, _ = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "contains no prepared launch" in told
