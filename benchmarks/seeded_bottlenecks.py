"""Bottlenecks made for real, one at a time: does ``paceline explain`` name the right one first?

Each is made in a script of its own under ``paceline run`` and in the workers of ``paceline
measure``, on one process and on two. The reference is the same training without the bottleneck:
what the step gets shorter by is the true size. Target: the right cause first, its size within
20 %; nothing found in the healthy run. A slow link needs the right to make a network namespace.

``--json FILE`` keeps every trial as soon as it is known; the same command again goes on from there.
``--stores DIR`` keeps the launches: with them, an explanation that was changed is scored again
on the same steps without running anything.
A command that hangs is ended, its trial counts as failed, and the others go on.

    python benchmarks/seeded_bottlenecks.py --json seeded.json
    python benchmarks/seeded_bottlenecks.py --cases slow_rank,healthy --doors measure --rounds 1
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
    """One bottleneck: the cause that must come first, and how it is made under ``measure``.

    ``apart``: the reference are the same processes without any exchange.
    ``per_sample`` compares steps of different batches. ``most_steps`` bounds those of ``measure``
    where a step takes seconds.
    """

    cause: str
    options: str
    apart: bool = False
    computed: bool = False
    per_sample: bool = False
    most_steps: int = 1000


SEEDS = {
    "healthy": Seed("", "--model resnet20 --batch 32"),
    "slow_link": Seed("slow link", "--model fcn5 --batch 64", most_steps=8),
    "large_gradient": Seed("large gradient", "--model fcn5 --batch 16", apart=True),
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


def paceline(*words: str, prefix: Sequence[str] = (), **variables: str) -> str:
    """What a command prints; one that fails or hangs ends its trial."""
    command = [*prefix, sys.executable, "-m", "paceline", *words]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            answer, errors = process.communicate(timeout=LONGEST_SECONDS)
        except subprocess.TimeoutExpired as error:
            process.terminate()  # Paceline ends its workers with it
            raise TrialError(f"'{words[0]}' took longer than {LONGEST_SECONDS} s") from error
    if process.returncode:
        raise TrialError(f"'{words[0]}' ended with {process.returncode}: {errors[-500:]}")
    return answer


def explained(store: Path, study: str, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        paceline("explain", study, "--store", str(store), "--json", *words)
    )
    return found


def allowed(*command: str) -> bool:
    """Whether this machine lets us do something."""
    return subprocess.run(command, capture_output=True).returncode == 0


def prefix_of(case: str, real_time: bool) -> list[str]:
    """A slow link, one core, the machine before all others."""
    words = ["unshare", "-n", "sh", "-c", SLOW_LINK, "sh"] if case == "slow_link" else []
    if case == "one_core":
        words += ["taskset", "-c", "0"]
    if real_time and allowed("chrt", "-r", "1", "true"):
        words += ["chrt", "-r", "1"]
    return words


def study_name(repaired: bool) -> str:
    return "repaired" if repaired else "seeded"


def under_run(case: str, repaired: bool, steps: int, store: Path, real_time: bool) -> None:
    """The own script on one process and on two; where it is repaired, on two alone."""
    word = ["repaired"] if repaired else []
    first = real_time or not SEEDS[case].computed
    prefix = prefix_of("" if repaired or case == "one_core" else case, first)
    many = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    for start in [many] if repaired else [[sys.executable], many]:
        words = [*start, str(SCRIPT), case, str(steps), *word]
        given = ["--study", study_name(repaired), "--model", "net"]
        paceline("run", *given, "--store", str(store), "--json", "--", *words, prefix=prefix)


def under_measure(case: str, repaired: bool, steps: int, store: Path, real_time: bool) -> None:
    """A study whose workers are slowed down; where it is repaired, on two processes alone."""
    options = REPAIRED_OPTIONS.get(case, SEEDS[case].options) if repaired else SEEDS[case].options
    given = ["-j", "1x1,1x2", "--instrument", "none,phases", "--launches", "1"]
    if repaired:
        given = ["-j", "1x2", "--launches", "1", *(["--no-sync"] if SEEDS[case].apart else [])]
    variables = {"PYTHONPATH": f"{SABOTAGE}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    paceline(
        *("measure", *options.split(), *given, "--steps", str(min(steps, SEEDS[case].most_steps))),
        *("--study", study_name(repaired), "--store", str(store), "--json"),
        prefix=prefix_of("" if repaired else case, real_time),
        **({} if repaired else {**variables, "SEEDED_CASE": case}),
    )


def kept_studies(store: Path) -> set[str]:
    """Studies of a store of an earlier trial; none where there is no such store."""
    if not store.exists():
        return set()
    listed = json.loads(paceline("studies", "--store", str(store), "--json"))
    return {one["name"] for one in listed["studies"]}


def mean_step(store: Path, study: str) -> dict[str, Any]:
    """The plain step of two processes, without exchange where there is such a launch."""
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
    """What the step gets shorter by without the bottleneck, seconds."""
    step: float = seeded["measured_step_seconds"]
    if repaired is None:
        return 0.0
    other: float = repaired["measured_step_seconds"]
    if SEEDS[case].per_sample:
        other *= seeded["batch_per_rank"] / repaired["batch_per_rank"]
    return step - other


def trial(case: str, door: str, round_: int, options: argparse.Namespace) -> dict[str, Any]:
    """One bottleneck made, explained, and held against its repaired twin."""
    made = partial(
        under_run if door == "run" else under_measure,
        steps=10 if options.quick else options.steps,
        real_time=options.real_time,
    )
    wanted, repaired = SEEDS[case].cause, None
    with tempfile.TemporaryDirectory() as directory:
        store = Path(options.stores or directory).resolve() / f"{case}-{door}-{round_}.db"
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
        "said": first["verdict"] if first else "no finding",
        "size_seconds": first["seconds"] if first else 0.0,
        "true_seconds": true_size(case, seeded, repaired) if wanted else 0.0,
        "step_seconds": step,
        "unexplained_share": rest / step,
        "others": {one["cause"]: one["seconds"] for one in seeded["findings"][1:]},
    }


def attempted(case: str, door: str, round_: int, options: argparse.Namespace) -> dict[str, Any]:
    """A trial; what went wrong where it failed."""
    began = time.monotonic()
    try:
        found = trial(case, door, round_, options)
    except TrialError as error:
        found = {"wanted": SEEDS[case].cause, "failed": str(error)}
    return {**found, "seconds": round(time.monotonic() - began, 1), **machine()}


def trials(options: argparse.Namespace, known: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Every trial that was asked for, those that are known already first read, then made."""
    done = {(one["round"], one["door"], one["case"]): one for one in known if "failed" not in one}
    for round_ in range(1, 1 + (1 if options.quick else options.rounds)):
        for door in options.doors.split(","):
            for case in options.cases.split(","):
                if case == "slow_link" and not allowed("unshare", "-n", "true"):
                    print("slow_link: left out, no right to make a network namespace")
                    continue
                key = {"round": round_, "door": door, "case": case}
                found = done.get((round_, door, case))
                yield found or {**key, **attempted(case, door, round_, options)}


def first_right(one: dict[str, Any]) -> bool:
    """Whether the seeded cause came first; nothing, where the run is healthy."""
    return "failed" not in one and one["named"] == one["wanted"]


def size_ratio(one: dict[str, Any]) -> float | None:
    """What was said over what is true; None where that is not known."""
    true = one.get("true_seconds", 0.0)
    return one["size_seconds"] / true if first_right(one) and true > 0 else None


def line(one: dict[str, Any]) -> str:
    """One trial as a line of the table."""
    head = f"{one['case']:15}{one['door']:9}{one['round']:>5}  "
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
    """Whether the targets are met, door by door."""
    for door in dict.fromkeys(one["door"] for one in found):
        own = [one for one in found if one["door"] == door]
        ratios = [ratio for one in own if (ratio := size_ratio(one)) is not None]
        near = sum(abs(ratio - 1) <= TOLERANCE for ratio in ratios)
        seeded = [one for one in own if one["wanted"]]
        healthy = [one for one in own if not one["wanted"]]
        print(
            f"{door}: right one first in {sum(map(first_right, seeded))} of {len(seeded)}; "
            f"size within {TOLERANCE:.0%} in {near} of {len(ratios)}; "
            f"nothing found in {sum(map(first_right, healthy))} of {len(healthy)} healthy"
        )


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--cases", default=",".join(SEEDS), help="by commas [all]")
    parser.add_argument("--doors", default="run,measure", help="run, measure or both")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("--names-only", action="store_true", help="run no repaired references")
    parser.add_argument("--stores", metavar="DIR", help="keep the launches here, or use these")
    parser.add_argument(
        "--real-time", action="store_true", help="measure before all other programs (chrt)"
    )
    options = parser.parse_args()
    for name in options.cases.split(","):
        if name not in SEEDS:
            parser.error(f"'{name}' is no case; there are {', '.join(SEEDS)}")
    heads = f"{'case':15}{'door':9}{'round':>5}  {'ok':4}{'found first':26}{'ms':>8}{'true':>8}"
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
