"""Ranks that MPI starts on this machine."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from paceline.errors import EnvironmentUnusableError
from paceline.launch.engine import EngineLauncher
from paceline.launch.launcher import Detection, LaunchRequest

PROGRAM = "mpiexec"
REMEDY = "install MPI; environments of frameworks that need it bring one of their own"


class MpiexecLauncher(EngineLauncher):
    """Starts ranks with the mpiexec beside the rank's interpreter, else with that of the path."""

    name = "mpiexec"

    def detect(self) -> Detection:
        """Whether an mpiexec is on the path."""
        found = shutil.which(PROGRAM)
        return Detection(found is not None, found or "", "" if found else REMEDY)

    def engine(self, request: LaunchRequest) -> Sequence[str]:
        """``mpiexec -n N``."""
        beside = Path(request.command(0)[0]).parent / PROGRAM
        found = str(beside) if beside.exists() else shutil.which(PROGRAM)
        if found is None:
            raise EnvironmentUnusableError(
                "the launcher 'mpiexec' needs the program mpiexec, which is not here", REMEDY
            )
        return (found, "-n", str(request.world_size))
