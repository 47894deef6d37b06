"""Ranks of a process from the environment of its launcher."""

import pytest

from paceline.launch.onhost.placement import PlacementError, placement

SLURM = {"SLURM_PROCID": "3", "SLURM_NTASKS": "8", "SLURM_JOB_ID": "7", "SLURM_RESTART_COUNT": "1"}


@pytest.mark.parametrize(
    ("variables", "engine", "ranks"),
    [
        (SLURM, "Slurm", (3,)),
        ({**SLURM, "SLURM_NTASKS": "2", "SLURM_PROCID": "1"}, "Slurm", (4, 5, 6, 7)),
        ({"OMPI_COMM_WORLD_RANK": "5", "OMPI_COMM_WORLD_SIZE": "8"}, "Open MPI", (5,)),
        ({"OMPI_COMM_WORLD_RANK": "5", "PMIX_RANK": "5", **SLURM}, "Open MPI", (5,)),
        ({"PMI_RANK": "2", "PMI_SIZE": "8"}, "MPICH", (2,)),
        ({"PMIX_RANK": "6"}, "PMIx", (6,)),
        ({"RANK": "7", "WORLD_SIZE": "8"}, "the environment", (7,)),
        ({"JOB_COMPLETION_INDEX": "1"}, "Kubernetes", (4, 5, 6, 7)),
        (
            {
                "RANK": "1",
                "WORLD_SIZE": "8",
                "TORCHELASTIC_RUN_ID": "x",
                "OMPI_COMM_WORLD_RANK": "0",
            },
            "torchrun",
            (1,),
        ),
    ],
)
def test_ranks_come_from_the_innermost_launcher(variables, engine, ranks):
    found = placement(variables, nodes=2, processes=4)
    assert (found.engine, found.ranks) == (engine, ranks)


def test_a_requeued_job_is_another_attempt():
    again = {**SLURM, "SLURM_RESTART_COUNT": "2"}
    assert placement(SLURM, 2, 4).attempt != placement(again, 2, 4).attempt


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({}, "the rank is unknown"),
        (
            {"SLURM_PROCID": "0", "SLURM_NTASKS": "3"},
            "Slurm started 3 processes, but",
        ),
        ({"RANK": "8", "WORLD_SIZE": "8"}, "RANK=8 is out of range for 2x4 ranks"),
        ({"RANK": "-1", "WORLD_SIZE": "8"}, "RANK=-1 is out of range"),
        ({"RANK": "first", "WORLD_SIZE": "8"}, "RANK must be an integer \\(got 'first'\\)"),
        ({"JOB_COMPLETION_INDEX": "2"}, "JOB_COMPLETION_INDEX=2 is out of range"),
    ],
)
def test_environment_without_a_valid_rank_is_an_error(variables, message):
    with pytest.raises(PlacementError, match=message):
        placement(variables, nodes=2, processes=4)
