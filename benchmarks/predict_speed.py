"""Speed of predictions on one core.

1. Five-axis sweep of ResNet-50 (all layers, roofline, overlap): configurations/s of the
   sweeps on a grid and on scattered points, per policy; reference: the scheduler
   engine on points of the same grid. Target: 2,000,000/s on the grid.
2. Search of every plan of GPT-3 175B on up to 512 A100: plans and seconds; the best of a random
   sample of plans must be the one that scheduling each of them finds. Target: <= 20 s.
3. A data-parallel step of 162 tasks on N = 2..4096 workers, one representative rank.
   Target: <= 1 ms each.
4. The same step on 4096 workers that all differ. Target: <= 5 s.
5. 'paceline advise' for GPT-3 175B on 64 DGX A100, start-up included. Target: <= 5 s.
6. One 'predict' of GPT-3 175B on 512 A100 in 16 stages in a warm process, every plan once,
   without its timeline and with it. Target: <= 3 ms without.
7. One warm 'predict' of ResNet-50 under DDP and of Llama 3 8B under FSDP. Targets: 2 and 3 ms.
8. 'paceline predict' in a new process, start-up included. Target: <= 250 ms of CPU.
9. With --rivals: CPU per answer of llm-analysis, and of Calculon and SimuMax from checkouts, on the
   published runs of rivals.py, beside Paceline in a warm process.

Wall and CPU seconds are both printed; on a busy machine only CPU seconds are meaningful.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import resource
import statistics
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from common import arguments, finish, machine

import rivals
from paceline.hardware import catalogue
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.sync_policy import synchronisation
from paceline.predictor.predict import predict
from paceline.predictor.schedule.device_step import DeviceStep
from paceline.predictor.schedule.step_costs import GradientExchange, LayerTime, StepCosts
from paceline.predictor.schedule.unequal_ranks import with_slowdowns
from paceline.predictor.search import PlanSearch
from paceline.predictor.sweep import AXES, DataParallelSweep, Grid, Points
from paceline.workload.workload import Workload

POLICIES = ("bucketed", "per_tensor", "one_message", "none")
GLOBAL_BATCHES = (1440, 1536, 1680, 1920)
NOT_OF_A_USER = ("PYTHONDONTWRITEBYTECODE", "BLAS_NUM_THREADS", "OMP_NUM_THREADS")
"""Variables that a new process does not inherit."""


def timed(call: Callable[[], Any], repeats: int) -> dict[str, Any]:
    """Wall and CPU seconds of a call: median, fastest, slowest; and its last result."""
    wall, cpu, result = [], [], None
    for _ in range(repeats):
        started, used = time.perf_counter(), time.process_time()
        result = call()
        wall.append(time.perf_counter() - started)
        cpu.append(time.process_time() - used)
    return {
        "wall_seconds": statistics.median(wall),
        "cpu_seconds": statistics.median(cpu),
        "cpu_seconds_fastest": min(cpu),
        "cpu_seconds_slowest": max(cpu),
        "result": result,
    }


def five_axes(points_per_axis: int, repeats: int) -> dict[str, Any]:
    """Rates of sweeps, and of the scheduler on some of the same points."""
    figures = {}
    for policy in POLICIES:
        sweep = DataParallelSweep(
            Workload.of("resnet50", 64),
            catalogue.cluster("dgx-1"),
            Plan(synchronisation=synchronisation(policy)),
        )
        grid = _grid(sweep.base, points_per_axis)
        run = timed(partial(sweep.on_grid, grid), repeats)
        scattered = _some_points(grid, 20_000)
        alone = timed(partial(sweep.at, scattered), repeats)
        few = _some_points(grid, 30)
        reference = timed(partial(_schedule, sweep, few), 1)
        errors = np.abs(sweep.at(few) / reference["result"] - 1.0)
        rate = grid.size / run["cpu_seconds"]
        slow = few.size / reference["cpu_seconds"]
        figures[policy] = {
            "configurations": grid.size,
            "configurations_per_cpu_second": rate,
            "configurations_per_wall_second": grid.size / run["wall_seconds"],
            "spread_of_rate": [
                grid.size / run["cpu_seconds_slowest"],
                grid.size / run["cpu_seconds_fastest"],
            ],
            "scattered_per_cpu_second": scattered.size / alone["cpu_seconds"],
            "scheduler_per_cpu_second": slow,
            "largest_difference": float(errors.max()),
        }
        print(
            f"  {policy:<12} {rate / 1e6:7.2f} M/s on the grid of {grid.size:,} "
            f"({figures[policy]['scattered_per_cpu_second'] / 1e6:.2f} M/s scattered), "
            f"scheduler {slow:,.0f}/s: x{rate / slow:,.0f}, differs by {errors.max():.1e}"
        )
    return figures


def _grid(base: dict[str, float], count: int) -> Grid:
    around = np.geomspace(0.1, 10.0, count)
    return Grid(
        np.unique(np.geomspace(1, 512, count).round()),
        base["flops"] * around,
        base["memory"] * around,
        base["link"] * np.geomspace(0.005, 5.0, count),
        np.unique(np.geomspace(1, 512, count).round()),
    )


def _some_points(grid: Grid, count: int) -> Points:
    random = np.random.default_rng(1)
    return Points(*(random.choice(getattr(grid, name), count) for name in AXES))


def _schedule(sweep: DataParallelSweep, points: Points) -> np.ndarray:
    return np.array(
        [
            sweep.scheduled({name: float(getattr(points, name)[i]) for name in AXES}).step_seconds
            for i in range(points.size)
        ]
    )


def plan_search(quick: bool) -> dict[str, Any]:
    """All plans of GPT-3 175B on 1 to 64 nodes at several global batches."""
    workload = Workload.of("gpt3_175b", 1, 2048, "bf16", "adam")
    cluster = catalogue.cluster("dgx-a100").with_nodes(64)
    like = Plan(framework="megatron-lm")
    nodes = tuple(range(1, 65))
    batches = GLOBAL_BATCHES[:1] if quick else GLOBAL_BATCHES
    searches = [PlanSearch(workload, cluster, batch, nodes, like) for batch in batches]
    run = timed(lambda: [search.run() for search in searches], 1)
    plans = sum(found.size for found in run["result"])
    fitting = sum(int((f.memory_bytes <= 80e9).sum()) for f in run["result"])
    sample = _sample_optimum(searches[0], run["result"][0], 10 if quick else 40)
    print(
        f"  {plans:,} plans ({fitting:,} fit) in {run['cpu_seconds']:.1f} s CPU, "
        f"{run['wall_seconds']:.1f} s wall: {plans / run['cpu_seconds']:,.0f} plans/s"
    )
    print(
        f"  best of {sample['plans']} fitting plans drawn at random: rank {sample['rank']} "
        f"of the scheduler's, {sample['lost']:.4%} slower than its best; "
        f"scheduler {sample['scheduler_plans_per_cpu_second']:.1f} plans/s"
    )
    return {
        "plans": plans,
        "fitting": fitting,
        "wall_seconds": run["wall_seconds"],
        "cpu_seconds": run["cpu_seconds"],
        "global_batches": list(batches),
        "sample": sample,
    }


def _sample_optimum(search: PlanSearch, found: Any, count: int) -> dict[str, Any]:
    """Fitting plans drawn at random: the search's best among them against the scheduler's."""
    fits = np.flatnonzero(found.memory_bytes <= 80e9)
    sample = np.random.default_rng(3).choice(fits, count, replace=False)

    def schedule_all() -> list[float]:
        steps = []
        for index in sample:
            plan = found.plan(int(index), search.like)
            workload = search.workload.with_batch(search.global_batch // plan.dp)
            place = search.cluster.with_devices(plan.devices)
            steps.append(predict(workload, place, plan).step_seconds)
        return steps

    run = timed(schedule_all, 1)
    steps = np.array(run["result"])
    chosen = int(found.seconds[sample].argmin())
    return {
        "plans": count,
        "rank": int((steps < steps[chosen]).sum()) + 1,
        "lost": float(steps[chosen] / steps.min() - 1.0),
        "largest_difference": float(np.abs(found.seconds[sample] / steps - 1.0).max()),
        "scheduler_plans_per_cpu_second": count / run["cpu_seconds"],
    }


def _step(workers: int, interference: float = 0.03) -> Any:
    """54 layers forward and backward with a message each: 162 tasks."""
    layers = [LayerTime(f"layer{i}", 1e-3, 2e-3, 2e6) for i in range(54)]
    seconds = 2.0 * (workers - 1) / workers / 1.2e9
    exchange = GradientExchange(
        synchronisation("per_tensor"), lambda size: 1e-5 * workers + size * seconds
    )
    return DeviceStep(layers, exchange, StepCosts(interference=interference)).tasks()


def scheduling(repeats: int) -> dict[str, Any]:
    """One representative rank, whatever N is; then 4096 ranks that differ."""
    figures: dict[str, Any] = {"milliseconds_by_workers": {}}
    for workers in (2, 8, 64, 512, 4096):
        run = timed(partial(_step, workers), repeats)
        figures["milliseconds_by_workers"][workers] = 1e3 * run["cpu_seconds"]
        tasks = figures["tasks"] = len(run["result"].tasks)
        print(f"  N = {workers:<5} {tasks} tasks: {1e3 * run['cpu_seconds']:.2f} ms")
    slowdowns = np.random.default_rng(0).lognormal(0.0, 0.05, 4096)
    step, plan = _step(4096), Plan(dp=4096)
    run = timed(lambda: with_slowdowns(step, plan, slowdowns.tolist()), 3)
    ratio = run["result"].seconds / step.seconds
    print(
        f"  4096 unequal ranks: {run['cpu_seconds']:.3f} s CPU, {run['wall_seconds']:.3f} s wall "
        f"(the step takes {ratio:.3f} times that of equal ranks)"
    )
    figures["unequal_ranks_seconds"] = run["cpu_seconds"]
    figures["unequal_ranks_wall_seconds"] = run["wall_seconds"]
    return figures


def advice() -> dict[str, Any]:
    """The command in its own process."""
    words = "advise --model gpt3_175b --cluster dgx-a100 --nodes 64 --global-batch 1536"
    code = "from paceline.cli.main import main; main()"
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", code, *words.split()], check=True, capture_output=True)
    wall = time.perf_counter() - started
    cpu = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    print(f"  advise: {wall:.1f} s wall, {cpu:.1f} s CPU, start-up included")
    return {"wall_seconds": wall, "cpu_seconds": cpu}


def one_answer() -> dict[str, Any]:
    """Plans of one model that differ in batch and chunks, each predicted once."""
    cluster = catalogue.cluster("dgx-a100").with_nodes(64)
    like = Plan(tp=8, pp=16, dp=4, micro_batch=1, framework="megatron-lm")
    figures: dict[str, Any] = {}
    for interleave in (1, 2, 6):
        plan = replace(like, interleave=interleave)
        batches = iter(range(48, 48 + 16 * 20, 16))

        def ask(plan: Plan = plan, batches: Any = batches) -> Any:
            workload = Workload.of("gpt3_175b", next(batches), 2048, "bf16", "adam")
            return predict(workload, cluster, plan)

        ask()
        alone = timed(ask, 15)
        listed = timed(lambda: ask().step, 3)
        figures[f"interleave {interleave}"] = {
            "milliseconds": 1e3 * alone["cpu_seconds"],
            "with_timeline_milliseconds": 1e3 * listed["cpu_seconds"],
        }
        print(
            f"  {interleave} chunks per stage: {1e3 * alone['cpu_seconds']:.1f} ms, "
            f"with timeline {1e3 * listed['cpu_seconds']:.0f} ms"
        )
    return figures


def warm_answers() -> dict[str, float]:
    """Milliseconds of CPU of one prediction in a warm process; batches differ."""
    resnet, llama = Workload.of("resnet50", 32), Workload.of("llama3_8b", 1, 8192, "bf16", "adam")
    volta, hopper = (
        catalogue.cluster("dgx-1").with_nodes(4),
        catalogue.cluster("dgx-h100").with_nodes(8),
    )
    fsdp = Plan(dp=64, framework="torch-fsdp")
    jobs: dict[str, Callable[[int], Any]] = {
        "resnet50": lambda batch: predict(resnet.with_batch(batch), volta, Plan(dp=32)),
        "llama3_8b": lambda batch: predict(llama.with_batch(batch), hopper, fsdp),
    }
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for batch in range(1, 41):
        for name, ask in jobs.items():
            times[name].append(timed(partial(ask, batch), 1)["cpu_seconds"])
    figures = {name: 1e3 * statistics.median(own[5:]) for name, own in times.items()}
    print("  " + ", ".join(f"{name} {own:.2f} ms" for name, own in figures.items()))
    return figures


def cold_answer(repeats: int) -> float:
    """Milliseconds of CPU of the whole command in a process of its own, with bytecode."""
    words = "predict --model resnet50 --cluster dgx-1 --batch 64"
    code = "from paceline.cli.main import main; main()"
    environment = {k: v for k, v in os.environ.items() if not k.endswith(NOT_OF_A_USER)}
    found = []
    for _ in range(repeats + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-c", code, *words.split()],
            env=environment,
            check=True,
            capture_output=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    cpu = 1e3 * statistics.median(found[1:])
    print(f"  predict: {cpu:.0f} ms of CPU, start-up included")
    return cpu


def beside_rivals(options: Namespace) -> dict[str, Any]:
    """Milliseconds of CPU per answer of each program, over the rows that it answers."""
    chosen = rivals.rows(12 if options.quick else options.rows)
    given = [numbers for numbers, _ in chosen]
    answers = {"paceline": rivals.own_answers([job for _, job in chosen])}
    answers.update(rivals.answers_of_rivals(options, given))
    figures: dict[str, Any] = {}
    for name, said in answers.items():
        times = sorted(one["milliseconds"] for one in said if one.get("seconds"))
        if not times:
            print(f"  {name}: answers no row")
            continue
        figures[name] = {"rows": len(times), "median": statistics.median(times), "most": times[-1]}
        print(
            f"  {name:<30} {len(times):3} rows  {statistics.median(times):7.2f} ms median "
            f"{times[-1]:7.2f} ms at most"
        )
    return figures


def main() -> None:
    """Run everything, or only the comparison with other programs."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--rivals", action="store_true", help="only CPU per answer of programs")
    rivals.add_options(parser)
    options = parser.parse_args()
    if options.rivals:
        finish({"machine": machine(), "milliseconds": beside_rivals(options)}, options.json)
        return
    figures: dict[str, Any] = {"machine": machine()}
    print(f"one core of {os.cpu_count()}, load average {figures['machine']['load_average']}")
    print("five-axis sweep of resnet50 (target 2.00 M/s)")
    figures["five_axes"] = five_axes(10 if options.quick else 20, 2 if options.quick else 5)
    print("plan search, gpt3_175b, 8 to 512 A100 (target 20 s)")
    figures["plan_search"] = plan_search(options.quick)
    print("data-parallel step (target 1 ms, unequal ranks 5 s)")
    figures["scheduling"] = scheduling(20 if options.quick else 200)
    print("advise (target 5 s)")
    figures["advise"] = advice()
    print("one predict of gpt3_175b, pp 16 on 512 A100 (target 3 ms)")
    figures["one_answer"] = one_answer()
    print("one predict of resnet50 under DDP (target 2 ms) and of llama3_8b under FSDP (3 ms)")
    figures["warm_answers_milliseconds"] = warm_answers()
    print("paceline predict in a new process (target 250 ms)")
    figures["cold_answer_milliseconds"] = cold_answer(5)
    finish(figures, options.json)


if __name__ == "__main__":
    main()
