"""Public function run_ranks: the ranks of a prepared launch, inside an allocation."""

from pathlib import Path

from paceline.errors import InputError
from paceline.launch.launch_files import check_launch
from paceline.launch.onhost.agent import run_agent
from paceline.launch.onhost.placement import PlacementError


def run_ranks(launch: Path | str) -> int:
    """Run the ranks of a prepared launch that belong to this process; return their exit code.

    ``launch`` is a directory that `Study.prepare` wrote, or its ``launch.json``. The ranks follow
    from the environment: SLURM_*, OMPI_*, PMI_*, PMIX_*, RANK and WORLD_SIZE, or
    JOB_COMPLETION_INDEX.
    """
    path = Path(launch)
    directory = (path if path.is_dir() else path.parent).resolve()
    check_launch(directory)
    try:
        return run_agent(directory)
    except PlacementError as error:
        raise InputError(str(error), "run 'paceline worker --help' for examples") from error
