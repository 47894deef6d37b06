"""Measures GEMM, memory bandwidth and all-reduce of this machine with PyTorch.

    python torch_probe.py JOB.json EVENTS.jsonl

One process per rank, environment as for `torch_ddp.py`. All ranks run the arithmetic and memory
kernels at the same time, so that with several ranks the figures include contention; the
all-reduce needs at least two ranks. Each event has every repetition. With ``in_flight``, N
all-reduces are issued together, as in a training step, and the time is that of one of them. Each
round begins with a pause of ``pause_seconds``; ranks that are ``ahead`` have real-time priority.
"""

import json
import os
import sys
import time
from collections.abc import Callable

import torch
import torch.distributed as dist
from channel import Events, die_with_parent
from device_clock import run_ahead_of_others
from torch_rendezvous import join


def main() -> None:
    die_with_parent()
    with open(sys.argv[1], encoding="utf-8") as file:
        job = json.load(file)
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    with Events(sys.argv[2]) as events:
        events.write("hello", rank=rank, world=world, versions={"framework": torch.__version__})
        torch.set_num_threads(job["threads"])
        if job.get("ahead"):
            run_ahead_of_others()
        if world > 1:
            join("gloo")
        for size in job["gemm_sizes"]:
            events.write("gemm", rank=rank, size=size, seconds=gemm(size, job, world))
        for size in job["copy_bytes"]:
            events.write("copy", rank=rank, bytes=size, seconds=copy(size, job, world))
        if world > 1:
            for size in job["all_reduce_bytes"]:
                events.write("all_reduce", rank=rank, bytes=size, seconds=all_reduce(size, job))
        events.write("end", rank=rank)
    if world > 1:
        dist.barrier()
    os._exit(0)


def gemm(size: int, job: dict, world: int) -> list[float]:
    """Return the seconds of square fp32 GEMMs of the given size."""
    left, right = torch.randn(size, size), torch.randn(size, size)
    out = torch.empty(size, size)
    return repeat(lambda: torch.mm(left, right, out=out), job["seconds_per_point"], world)


def copy(size: int, job: dict, world: int) -> list[float]:
    """Seconds of ``a = b + c`` over arrays that together move ``size`` bytes."""
    elements = max(1, size // 12)  # two reads and one write of 4 bytes
    b, c = torch.randn(elements), torch.randn(elements)
    a = torch.empty(elements)
    return repeat(lambda: torch.add(b, c, out=a), job["seconds_per_point"], world)


def all_reduce(size: int, job: dict) -> list[float]:
    """Seconds of all-reduces of ``size`` bytes of float32; all ranks start each together."""
    count = job.get("in_flight", 1)
    buffers = [torch.zeros(max(1, size // 4)) for _ in range(count)]
    dist.all_reduce(buffers[0])
    seconds: list[float] = []
    budget = time.perf_counter() + job["seconds_per_point"]
    while len(seconds) < job["minimum_repetitions"] or vote(time.perf_counter() < budget):
        dist.barrier()
        time.sleep(job.get("pause_seconds", 0.0))
        start = time.perf_counter()
        for work in [dist.all_reduce(buffer, async_op=True) for buffer in buffers]:
            work.wait()
        seconds.append((time.perf_counter() - start) / count)
        if len(seconds) >= job["maximum_repetitions"]:
            break
    return seconds


def vote(wish: bool) -> bool:
    """Return whether all ranks continue: they must leave a loop of collectives together."""
    ballot = torch.tensor([1.0 if wish else 0.0])
    dist.all_reduce(ballot, op=dist.ReduceOp.MIN)
    return bool(ballot.item() > 0)


def repeat(work: Callable[[], object], seconds: float, world: int) -> list[float]:
    """Durations of repeated calls for about ``seconds``, after one warm-up call."""
    work()
    if world > 1:
        dist.barrier()
    durations: list[float] = []
    end = time.perf_counter() + seconds
    while True:
        start = time.perf_counter()
        work()
        stop = time.perf_counter()
        durations.append(stop - start)
        if stop >= end or len(durations) >= 1000:
            return durations


if __name__ == "__main__":
    main()
