"""``paceline worker``: the ranks of a prepared launch, started by an engine that the user runs."""

from pathlib import Path

import click

from paceline.errors import InputError

EXAMPLE = """
\b
Examples (LAUNCH is a directory that 'paceline measure --dry-run' wrote):
  srun --nodes 2 --ntasks-per-node 4 paceline worker LAUNCH
  mpirun -n 8 paceline worker LAUNCH
  torchrun --nnodes 2 --nproc-per-node 4 --no-python paceline worker LAUNCH
"""


@click.command(epilog=EXAMPLE)
@click.argument("launch", type=click.Path(path_type=Path, exists=True))
def command(launch: Path) -> None:
    """Run this process's part of a prepared launch, inside an allocation.

    Which part that is comes from the environment: SLURM_*, OMPI_*, PMI_*, PMIX_*, RANK and
    WORLD_SIZE, or JOB_COMPLETION_INDEX. There is one process per rank, or one per node, which then
    runs all ranks of it. All machines must see the directory; results are left in it.
    """
    from paceline.launch.documents import check_launch
    from paceline.launch.onhost.agent import run_agent
    from paceline.launch.onhost.placement import PlacementError

    directory = (launch if launch.is_dir() else launch.parent).resolve()
    check_launch(directory)
    try:
        code = run_agent(directory)
    except PlacementError as error:
        raise InputError(str(error), "'paceline worker --help' has examples") from error
    raise SystemExit(code)
