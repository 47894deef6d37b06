"""``paceline worker``: run ranks of a prepared launch under srun, mpirun or torchrun."""

from pathlib import Path

import click

EXAMPLE = """
\b
Examples (LAUNCH is a directory written by 'paceline measure --dry-run'):
  srun --nodes 2 --ntasks-per-node 4 paceline worker LAUNCH
  mpirun -n 8 paceline worker LAUNCH
  torchrun --nnodes 2 --nproc-per-node 4 --no-python paceline worker LAUNCH
"""


@click.command(epilog=EXAMPLE)
@click.argument("launch", type=click.Path(path_type=Path, exists=True))
def command(launch: Path) -> None:
    """Run the ranks of a prepared launch that belong to this process, inside an allocation.

    The ranks follow from the environment: SLURM_*, OMPI_*, PMI_*, PMIX_*, RANK and WORLD_SIZE, or
    JOB_COMPLETION_INDEX. Start one process per rank, or one per node, which then runs all ranks of
    the node. The directory must be on a shared file system; results are written to it.
    """
    from paceline.launch.api import run_ranks

    raise SystemExit(run_ranks(launch))
