"""The private Slurm of ``script/slurm-up``, for tests that need one."""

import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "script" / "slurm-up"


def box(*arguments):
    return subprocess.run(
        [SCRIPT, *map(str, arguments)], capture_output=True, text=True, timeout=120
    )


@contextmanager
def running_box(directory, variables):
    """A box whose commands are first on the path of ``variables``."""
    daemon = shutil.which("slurmctld", path="/usr/sbin:/usr/bin:/sbin")
    if os.getuid() != 0 or daemon is None:
        pytest.skip("no Slurm, or not root: script/slurm-up install")
    started = box("up", directory)
    try:
        assert started.returncode == 0, started.stderr
        before = variables["PATH"]
        variables["PATH"] = f"{directory}/bin:{before}"
        yield directory
        variables["PATH"] = before
    finally:
        box("down", directory)
