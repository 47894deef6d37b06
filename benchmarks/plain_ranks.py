"""Runs a script on several ranks without Paceline, in forks of this process.

PyTorch is imported once here instead of in each rank, which takes seconds.
"""

import os
import runpy
import socket
import sys
import tempfile
import time
import traceback
from pathlib import Path

import torch
import torch.distributed
import torch.utils.data

_LOOK_SECONDS = 0.05


def run_ranks(script: Path, arguments: list[str], ranks: int, longest_seconds: float) -> str:
    """Output of the ranks; those that run for longer than ``longest_seconds`` are killed."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryFile() as output:
        children = {
            _forked(script, arguments, r, ranks, port, output.fileno()) for r in range(ranks)
        }
        ends = time.monotonic() + longest_seconds
        while children and time.monotonic() < ends:
            children = {one for one in children if os.waitpid(one, os.WNOHANG) == (0, 0)}
            time.sleep(_LOOK_SECONDS)
        for child in children:
            os.kill(child, 9)
            os.waitpid(child, 0)
        output.seek(0)
        return output.read().decode(errors="replace")


def _forked(
    script: Path, arguments: list[str], rank: int, ranks: int, port: int, output: int
) -> int:
    """Process number of a fork that runs the script as a rank."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    status = 0
    try:
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.environ.update(
            OMP_NUM_THREADS="1",
            RANK=str(rank),
            LOCAL_RANK=str(rank),
            WORLD_SIZE=str(ranks),
            LOCAL_WORLD_SIZE=str(ranks),
            MASTER_ADDR="127.0.0.1",
            MASTER_PORT=str(port),
        )
        torch.set_num_threads(1)
        sys.argv = [str(script), *arguments]
        runpy.run_path(str(script), run_name="__main__")
    except BaseException:
        traceback.print_exc()
        status = 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
