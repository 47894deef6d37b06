"""A worker that trains nothing: it follows the protocol with the standard library only.

``data.kind`` of the job selects its behaviour: success, or one of the failures of a launch.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

from channel import Events, die_with_parent


def main():
    die_with_parent()
    job = json.loads(Path(sys.argv[1]).read_text())
    rank, behaviour = int(os.environ["RANK"]), job["data"]["kind"]
    last = rank == job["world_size"] - 1
    if behaviour == "broken" and last:
        raise ImportError("libframework.so: cannot open shared object file")
    with Events(sys.argv[2]) as events:
        events.write("hello", rank=rank, world=job["world_size"], versions={"framework": "quick"})
        if behaviour == "hang":
            time.sleep(600)
        if behaviour == "crash" and last:
            raise RuntimeError("the last rank has had enough")
        if behaviour == "memory":
            raise MemoryError("cannot allocate 1 TB")
        if behaviour == "vanish":
            os._exit(0)
        if behaviour == "segfault" and last:
            os.kill(os.getpid(), signal.SIGSEGV)
        if behaviour == "absent":
            os._exit(0) if last else time.sleep(600)
        total = job["warmup_steps"] + job["steps"]
        for _ in range(total):
            time.sleep(0.01)
        seconds = [0.01 + 0.001 * rank] * total
        if behaviour == "warming":
            seconds[:6] = [0.02] * 6
        events.write(
            "steps",
            rank=rank,
            warmup_steps=job["warmup_steps"],
            wall_seconds=seconds,
            cpu_seconds=[0.01] * total,
            losses=[1.0] * total,
        )
        events.write("end", rank=rank)
    if behaviour == "abort":
        os.abort()


if __name__ == "__main__":
    main()
