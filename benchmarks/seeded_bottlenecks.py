"""Seeded bottlenecks, one at a time: does ``paceline explain`` rank the right one first?

Each is seeded in a script under ``paceline run`` and in the workers of ``paceline measure``, on one
process and on two. The reference is the same training without the bottleneck: the difference of
the steps is the true size. Target: the right cause first, its size within 20 %; no finding in the
healthy run. A slow link needs permission to create a network namespace.

``--json FILE`` saves every trial, and the same command resumes from it. ``--stores DIR`` keeps the
launches, so that a changed ``explain`` can be scored again on the same steps. A command that hangs
is ended, and its trial counts as failed.

    python benchmarks/seeded_bottlenecks.py --json seeded.json
    python benchmarks/seeded_bottlenecks.py --cases slow_rank,healthy --commands measure --rounds 1
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from common import arguments, finish, keep, kept, machine

FIXTURES = Path(__file__).parent.parent / "tests" / "fixtures"
SCRIPT = FIXTURES / "scripts" / "seeded_bottleneck.py"
SABOTAGE = FIXTURES / "seeded_worker"
LONGEST_SECONDS = 180.0
TOLERANCE = 0.2
SLOW_LINK = (
    "ip link set lo up && tc qdisc add dev lo root tbf rate 400mbit burst 256kb latency 50ms "
    '&& exec "$@"'
)


class TrialError(RuntimeError):
    """A command of a trial failed or hung."""


@dataclass(frozen=True)
class Seed:
    """One bottleneck: the cause that must come first, and its options of ``measure``.

    ``without_sync``: the reference is the same processes without communication.
    ``per_sample`` compares steps of different batches. ``most_steps`` limits the steps of
    ``measure`` if a step takes seconds.
    """

    cause: str
    options: str
    without_sync: bool = False
    computed: bool = False
    per_sample: bool = False
    most_steps: int = 1000


SEEDS = {
    "healthy": Seed("", "--model resnet20 --batch 32"),
    "slow_link": Seed("slow link", "--model fcn5 --batch 64", most_steps=8),
    "large_gradient": Seed("large gradient", "--model fcn5 --batch 16", without_sync=True),
    "tiny_buckets": Seed("buckets", "--model resnet110 --batch 4 --bucket 256B"),
    "slow_input": Seed("input", "--model resnet20 --batch 16"),
    "slow_rank": Seed("straggler", "--model resnet20 --batch 16"),
    "slow_backward": Seed("straggler", "--model resnet20 --batch 16"),
    "one_core": Seed("cores", "--model resnet20 --batch 16 --oversubscribe", computed=True),
    "tiny_batch": Seed("small batch", "--model fcn5 --batch 1", computed=True, per_sample=True),
    "no_overlap": Seed("no overlap", "--model fcn5 --batch 128 --bucket 1GiB"),
    "slow_start": Seed("slow start of collectives", "--model fcn5 --batch 64"),
}
REPAIRED_OPTIONS = {
    "tiny_buckets": "--model resnet110 --batch 4",
    "tiny_batch": "--model fcn5 --batch 128",
    "no_overlap": "--model fcn5 --batch 128 --bucket 4MiB",
}


def paceline(*arguments: str, prefix: Sequence[str] = (), **variables: str) -> str:
    """Output of a command; raises `TrialError` if it fails or hangs."""
    command = [*prefix, sys.executable, "-m", "paceline", *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            answer, errors = process.communicate(timeout=LONGEST_SECONDS)
        except subprocess.TimeoutExpired as error:
            process.terminate()  # Paceline ends its workers with it
            raise TrialError(f"'{arguments[0]}' took longer than {LONGEST_SECONDS} s") from error
    if process.returncode:
        raise TrialError(f"'{arguments[0]}' ended with {process.returncode}: {errors[-500:]}")
    return answer


def explained(store: Path, study: str, *arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        paceline("explain", study, "--store", str(store), "--json", *arguments)
    )
    return found


def allowed(*command: str) -> bool:
    """Whether a command succeeds on this machine."""
    return subprocess.run(command, capture_output=True).returncode == 0


def prefix_of(case: str, real_time: bool) -> list[str]:
    """Command prefix that slows the link, pins to one core or raises the priority."""
    prefix = ["unshare", "-n", "sh", "-c", SLOW_LINK, "sh"] if case == "slow_link" else []
    if case == "one_core":
        prefix += ["taskset", "-c", "0"]
    if real_time and allowed("chrt", "-r", "1", "true"):
        prefix += ["chrt", "-r", "1"]
    return prefix


def study_name(repaired: bool) -> str:
    return "repaired" if repaired else "seeded"


def under_run(case: str, repaired: bool, steps: int, store: Path, real_time: bool) -> None:
    """Run the script on one and two processes; the fixed one on two only."""
    mode = ["repaired"] if repaired else []
    first = real_time or not SEEDS[case].computed
    prefix = prefix_of("" if repaired or case == "one_core" else case, first)
    many = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    for start in [many] if repaired else [[sys.executable], many]:
        command = [*start, str(SCRIPT), case, str(steps), *mode]
        given = ["--study", study_name(repaired), "--model", "net"]
        paceline("run", *given, "--store", str(store), "--json", "--", *command, prefix=prefix)


def under_measure(case: str, repaired: bool, steps: int, store: Path, real_time: bool) -> None:
    """Run a study with slowed workers; the fixed one on two processes only."""
    options = REPAIRED_OPTIONS.get(case, SEEDS[case].options) if repaired else SEEDS[case].options
    given = ["-j", "1x1,1x2", "--instrument", "none,phases", "--launches", "1"]
    if repaired:
        given = [
            "-j",
            "1x2",
            "--launches",
            "1",
            *(["--no-sync"] if SEEDS[case].without_sync else []),
        ]
    variables = {"PYTHONPATH": f"{SABOTAGE}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    paceline(
        *("measure", *options.split(), *given, "--steps", str(min(steps, SEEDS[case].most_steps))),
        *("--study", study_name(repaired), "--store", str(store), "--json"),
        prefix=prefix_of("" if repaired else case, real_time),
        **({} if repaired else {**variables, "SEEDED_CASE": case}),
    )


def kept_studies(store: Path) -> set[str]:
    """Studies in the store of an earlier trial."""
    if not store.exists():
        return set()
    listed = json.loads(paceline("studies", "--store", str(store), "--json"))
    return {one["name"] for one in listed["studies"]}


def mean_step(store: Path, study: str) -> dict[str, Any]:
    """The plain step of two processes, without communication if there is such a launch."""
    listed = json.loads(paceline("list", "--study", study, "--store", str(store), "--json"))
    able = [
        one
        for one in listed["launches"]
        if one["processes"] == 2 and one["instrument"] == "none" and one["status"] == "finished"
    ]
    if not able:
        raise TrialError(f"no launch of '{study}' on two processes finished")
    plain = min(able, key=lambda one: one["synchronised"])
    return {
        "measured_step_seconds": plain["step_seconds"],
        "batch_per_rank": plain["batch_per_process"],
    }


def true_size(case: str, seeded: dict[str, Any], repaired: dict[str, Any] | None) -> float:
    """Difference of the steps with and without the bottleneck, seconds."""
    step: float = seeded["measured_step_seconds"]
    if repaired is None:
        return 0.0
    other: float = repaired["measured_step_seconds"]
    if SEEDS[case].per_sample:
        other *= seeded["batch_per_rank"] / repaired["batch_per_rank"]
    return step - other


def trial(case: str, command: str, round_: int, options: argparse.Namespace) -> dict[str, Any]:
    """Seed and explain one bottleneck, and compare with the fixed training."""
    made = partial(
        under_run if command == "run" else under_measure,
        steps=10 if options.quick else options.steps,
        real_time=options.real_time,
    )
    wanted, repaired = SEEDS[case].cause, None
    with tempfile.TemporaryDirectory() as directory:
        store = Path(options.stores or directory).resolve() / f"{case}-{command}-{round_}.db"
        done = kept_studies(store)
        if study_name(False) not in done:
            made(case, False, store=store)
        seeded = explained(store, study_name(False))
        if wanted and not options.names_only:
            if study_name(True) not in done:
                made(case, True, store=store)
            repaired = mean_step(store, study_name(True))
    first = next(iter(seeded["findings"]), None)
    rest = next(i["seconds"] for i in seeded["waterfall"] if i["kind"] == "unexplained")
    step = seeded["observed_step_seconds"]
    return {
        "wanted": wanted,
        "named": first["cause"] if first else "",
        "verdict": first["verdict"] if first else "no finding",
        "size_seconds": first["seconds"] if first else 0.0,
        "true_seconds": true_size(case, seeded, repaired) if wanted else 0.0,
        "step_seconds": step,
        "unexplained_share": rest / step,
        "others": {one["cause"]: one["seconds"] for one in seeded["findings"][1:]},
    }


def attempted(case: str, command: str, round_: int, options: argparse.Namespace) -> dict[str, Any]:
    """A trial, or the reason why it failed."""
    began = time.monotonic()
    try:
        found = trial(case, command, round_, options)
    except TrialError as error:
        found = {"wanted": SEEDS[case].cause, "failed": str(error)}
    return {**found, "seconds": round(time.monotonic() - began, 1), **machine()}


def trials(options: argparse.Namespace, known: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Every requested trial; known ones are not repeated."""
    done = {
        (one["round"], one["command"], one["case"]): one for one in known if "failed" not in one
    }
    for round_ in range(1, 1 + (1 if options.quick else options.rounds)):
        for command in options.commands.split(","):
            for case in options.cases.split(","):
                if case == "slow_link" and not allowed("unshare", "-n", "true"):
                    print("slow_link: skipped, no permission to create a network namespace")
                    continue
                key = {"round": round_, "command": command, "case": case}
                found = done.get((round_, command, case))
                yield found or {**key, **attempted(case, command, round_, options)}


def first_right(one: dict[str, Any]) -> bool:
    """Whether the seeded cause came first, or none in a healthy run."""
    return "failed" not in one and one["named"] == one["wanted"]


def size_ratio(one: dict[str, Any]) -> float | None:
    """Reported over true size; None if unknown."""
    true = one.get("true_seconds", 0.0)
    return one["size_seconds"] / true if first_right(one) and true > 0 else None


def line(one: dict[str, Any]) -> str:
    """One trial as a line of the table."""
    head = f"{one['case']:15}{one['command']:9}{one['round']:>5}  "
    if "failed" in one:
        return f"{head}FAILED {one['failed']}"
    right, ratio = "yes" if first_right(one) else "NO", size_ratio(one)
    return (
        f"{head}{right:4}{one['named'] or '-':26}"
        f"{one['size_seconds'] * 1e3:8.1f}{one['true_seconds'] * 1e3:8.1f}"
        f"{'-' if ratio is None else format(ratio, '.2f'):>7}"
        f"{one['unexplained_share']:7.1%}{one['load_average']:6.1f}{one['seconds']:6.0f}"
    )


def print_verdict(found: list[dict[str, Any]]) -> None:
    """Print the results by command."""
    for command in dict.fromkeys(one["command"] for one in found):
        own = [one for one in found if one["command"] == command]
        ratios = [ratio for one in own if (ratio := size_ratio(one)) is not None]
        accurate = sum(abs(ratio - 1) <= TOLERANCE for ratio in ratios)
        seeded = [one for one in own if one["wanted"]]
        healthy = [one for one in own if not one["wanted"]]
        print(
            f"{command}: right cause first in {sum(map(first_right, seeded))} of {len(seeded)}; "
            f"size within {TOLERANCE:.0%} in {accurate} of {len(ratios)}; "
            f"nothing found in {sum(map(first_right, healthy))} of {len(healthy)} healthy"
        )


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--cases", default=",".join(SEEDS), help="comma-separated [all]")
    parser.add_argument("--commands", default="run,measure", help="run, measure or both")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("--names-only", action="store_true", help="skip the references")
    parser.add_argument("--stores", metavar="DIR", help="keep launches in DIR, or reuse them")
    parser.add_argument(
        "--real-time", action="store_true", help="run with real-time priority (chrt)"
    )
    options = parser.parse_args()
    for name in options.cases.split(","):
        if name not in SEEDS:
            parser.error(f"unknown case '{name}'; known: {', '.join(SEEDS)}")
    heads = f"{'case':15}{'command':9}{'round':>5}  {'ok':4}{'found first':26}{'ms':>8}{'true':>8}"
    print(f"{heads}{'ratio':>7}{'rest':>7}{'load':>6}{'s':>6}", flush=True)
    found: list[dict[str, Any]] = []
    for one in trials(options, kept(options.json, "trials")):
        found.append(one)
        print(line(one), flush=True)
        keep({"trials": found}, options.json)
    print_verdict(found)
    finish({"trials": found}, options.json)


if __name__ == "__main__":
    main()
