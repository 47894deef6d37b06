"""Overhead of measuring with Paceline, compared with a minimal hand-written DDP loop.

Launches of both alternate in random order within pairs, on 1 and 2 processes, ResNet-44, one thread
per process. The ratio of a pair is the hand-written step time over that of Paceline: 1 means no
overhead, the target is at least 0.99 within the interval. CPU time per step is compared in the same
way, since wall time is unreliable on a shared machine.
"""

import json
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

from common import arguments, finish, machine, ratio_interval

from paceline.analysis.launch_statistics import mean_step_seconds
from paceline.launch import LaunchRequest, LocalLauncher
from paceline.measurement.job import Job
from paceline.measurement.run_job import run_job, thread_variables
from paceline.store import Store
from paceline.workload import zoo

HERE = Path(__file__).parent


def through_paceline(store: Store, world: int, steps: int, batch: int) -> tuple[float, float]:
    job = Job(
        model="resnet44",
        graph=zoo.build("resnet44").to_json(),
        batch_per_rank=batch,
        world_size=world,
        steps=steps,
        warmup_steps=2,
    )
    launch = run_job(job, store, "harness")
    cpu = [sum(rank.cpu_seconds[2:]) / steps for rank in launch.outcome.ranks]
    return mean_step_seconds(launch), max(cpu)


def by_hand(world: int, steps: int, batch: int) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        script = str(HERE / "handwritten" / "ddp_loop_script.py")
        command = [sys.executable, script, str(folder / "out"), str(steps), "2", str(batch)]
        ended = LocalLauncher().launch(
            LaunchRequest(
                lambda rank: command,
                folder,
                timeout_seconds=600,
                processes=world,
                variables=lambda rank: thread_variables(1),
            )
        )
        if ended.reason:
            raise SystemExit(f"the hand-written loop failed: {ended.reason}")
        ranks = [json.loads((folder / f"out.{rank}").read_text()) for rank in range(world)]
    slowest = [max(step) for step in zip(*(rank["wall"] for rank in ranks), strict=True)]
    return sum(slowest) / steps, max(sum(rank["cpu"]) / steps for rank in ranks)


def compare(world: int, pairs: int, steps: int, batch: int, store: Store) -> dict[str, Any]:
    order = random.Random(world)
    wall, cpu = [], []
    for pair in range(pairs):
        measured = {}
        names = ["paceline", "hand"]
        order.shuffle(names)
        for name in names:
            measured[name] = (
                through_paceline(store, world, steps, batch)
                if name == "paceline"
                else by_hand(world, steps, batch)
            )
        wall.append(measured["hand"][0] / measured["paceline"][0])
        cpu.append(measured["hand"][1] / measured["paceline"][1])
        print(
            f"  pair {pair + 1}/{pairs}, {world} process(es): hand-written "
            f"{measured['hand'][0] * 1e3:.1f} ms, Paceline {measured['paceline'][0] * 1e3:.1f} ms"
            f" (CPU {measured['hand'][1] * 1e3:.1f}, {measured['paceline'][1] * 1e3:.1f})",
            flush=True,
        )
    result = {}
    for name, ratios in (("wall", wall), ("cpu", cpu)):
        mean, low, high = ratio_interval(ratios)
        result[name] = {"ratio": mean, "low": low, "high": high, "pairs": ratios}
        print(f"{world} process(es), {name}: ratio {mean:.3f} [{low:.3f}, {high:.3f}]")
    return result


def main() -> None:
    options = arguments(__doc__ or "").parse_args()
    pairs, steps, batch = (2, 4, 16) if options.quick else (8, 12, 64)
    figures: dict[str, Any] = {"machine": machine(), "processes": {}}
    print(f"harness overhead: ResNet-44, batch {batch}, {steps} steps, {pairs} pairs")
    print(f"load average: {figures['machine']['load_average']}")
    with tempfile.TemporaryDirectory() as directory, Store(Path(directory) / "s.db") as store:
        for world in (1, 2):
            figures["processes"][world] = compare(world, pairs, steps, batch, store)
    finish(figures, options.json)


if __name__ == "__main__":
    main()
