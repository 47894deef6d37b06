"""Seeded bottlenecks in two unlike scripts: does ``paceline explain`` name each one first?

Every kind is seeded in ``seeds/vision.py`` and ``seeds/sequence.py``, on one process and on two
under ``paceline run``, in shuffled order; the tool never reads the name of the kind. The true size
is the difference of the seeded and the clean script, run alternately without Paceline. Target: the
right cause first, its size within 20 %; healthy runs called healthy. ``--load N`` runs beside N
busy loops: what other programs cost is reported apart and is no cause of the job. All kinds in both
scripts take about 16 minutes on two idle cores; no trial begins after ``--minutes``. With
``--json`` the same command resumes.

    python benchmarks/seeded_bottlenecks.py --minutes 20 --json seeded.json
    python benchmarks/seeded_bottlenecks.py --kinds metrics,healthy --scripts vision --load 2
    python benchmarks/seeded_bottlenecks.py --kinds healthy --repeat 5
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from common import arguments, beside, finish, keep, kept, machine

from plain_ranks import run_ranks

SEEDS = Path(__file__).parent / "seeds"
SCRIPTS = ("vision", "sequence")
LONGEST_SECONDS = 300.0
STEPS = 28
"""Steps of a launch: what happens every eighth step does so three times in the 24 counted ones."""
TOLERANCE = 0.2
COMMUNICATION = {"large gradient", "gradient copies", "exposed communication", "slow link"}
KINDS: dict[str, set[str]] = {
    "healthy": set(),
    "slow_input": {"input"},
    "cpu_input": {"input"},
    "rank_input": {"straggler"},
    "rank_forward": {"straggler"},
    "rank_backward": {"straggler"},
    "rank_host": {"straggler"},
    "uneven": {"straggler"},
    "jitter": {"jitter"},
    "stall": {"pauses"},
    "checkpoint": {"pauses"},
    "evaluation": {"pauses"},
    "logging": {"blocked host"},
    "drift": {"drift"},
    "blocked": {"blocked host"},
    "blocked_ddp": {"blocked host"},
    "threads": {"thread oversubscription"},
    "metrics": {"many small collectives"},
    "barriers": {"many small collectives"},
    "accumulate": {"synchronised accumulation"},
    "large_tensor": {"one large tensor"},
    "large_gradient": COMMUNICATION,
    "no_overlap": {"no overlap", *COMMUNICATION},
    "tiny_buckets": {"buckets"},
    "one_core": {"cores"},
    "gc": {"garbage collection"},
}
"""Causes that are right for each kind."""
WITHOUT_TRUTH = {"healthy", "large_tensor", "large_gradient"}
"""Kinds whose clean script is the same one: their size is not compared."""


class TrialError(RuntimeError):
    """A command of a trial failed or hung."""


def output(*command: str) -> str:
    """Standard output of a command."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=LONGEST_SECONDS
        )
    except subprocess.TimeoutExpired as error:
        raise TrialError(f"took longer than {LONGEST_SECONDS} s") from error
    if done.returncode:
        raise TrialError(f"exit code {done.returncode}: {done.stderr[-300:]}")
    return done.stdout


def job(script: str, kind: str, steps: int, processes: int) -> list[str]:
    """The command that trains on this number of processes."""
    start = [sys.executable]
    if processes > 1:
        start += ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={processes}"]
    return [*start, str(SEEDS / f"{script}.py"), kind, str(steps)]


def plain_step(script: str, kind: str, steps: int) -> float:
    """Seconds of a step on two processes as the script itself counts it."""
    text = run_ranks(SEEDS / f"{script}.py", [kind, str(steps)], 2, LONGEST_SECONDS)
    found = [line.split()[1] for line in text.splitlines() if line.startswith("STEP ")]
    if not found:
        raise TrialError(f"{script} {kind} without Paceline: {text[-300:]}")
    return float(found[0])


def true_size(script: str, kind: str, options: argparse.Namespace) -> float:
    """Median difference of the seeded and the clean script, run alternately."""
    if kind in WITHOUT_TRUTH or options.names_only:
        return 0.0
    pairs = [
        plain_step(script, kind, options.steps) - plain_step(script, f"clean-{kind}", options.steps)
        for _ in range(options.pairs)
    ]
    return statistics.median(pairs)


def explained(script: str, kind: str, store: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Run the script on one and on two processes, and explain the latter."""
    paceline = [sys.executable, "-m", "paceline"]
    given = ["--study", "job", "--store", str(store)]
    for processes in (1, 2):
        run = ["run", *given, "--model", "net", "--json", "--"]
        output(*paceline, *run, *job(script, kind, options.steps, processes))
    return dict(json.loads(output(*paceline, "explain", "job", "--store", str(store), "--json")))


def trial(script: str, kind: str, options: argparse.Namespace) -> dict[str, Any]:
    """Explain one seeded script and compare with the truth."""
    with tempfile.TemporaryDirectory() as directory:
        found = explained(
            script, kind, Path(options.stores or directory) / f"{script}-{kind}.db", options
        )
    machine_s = ("other programs", "slow core")
    own = [one for one in found["findings"] if one["cause"] not in machine_s]
    others = [one for one in found["findings"] if one["cause"] in machine_s]
    items = found["waterfall"]
    rest = sum(one["seconds"] for one in items if one["kind"] == "unexplained")
    return {
        "named": own[0]["cause"] if own else "",
        "all": {one["cause"]: one["seconds"] for one in own},
        "healthy": found["healthy"],
        "verdict": found["verdict"],
        "size_seconds": own[0]["seconds"] if own else 0.0,
        "true_seconds": true_size(script, kind, options),
        "step_seconds": found["observed_step_seconds"],
        "others_seconds": sum(one["seconds"] for one in others),
        "unattributed_share": rest / found["observed_step_seconds"],
        "sum_error": sum(one["seconds"] for one in items) / found["observed_step_seconds"] - 1.0,
    }


def attempted(script: str, kind: str, number: int, options: argparse.Namespace) -> dict[str, Any]:
    """A trial, or the reason why it failed."""
    key = {"script": script, "kind": kind, "repetition": number}
    began = time.monotonic()
    try:
        found = trial(script, kind, options)
    except (TrialError, OSError, LookupError, ValueError) as error:
        found = {"failed": f"{type(error).__name__}: {error}"}
    return {**key, **found, "seconds": round(time.monotonic() - began, 1), **machine()}


def right(one: dict[str, Any]) -> bool:
    """Whether a right cause came first, or a healthy run was called healthy."""
    if "failed" in one:
        return False
    wanted = KINDS[one["kind"]]
    return one["named"] in wanted if wanted else one["healthy"]


def size_ratio(one: dict[str, Any]) -> float | None:
    """Reported over true size; None if unknown."""
    true = one.get("true_seconds", 0.0)
    return one["size_seconds"] / true if right(one) and true > 0 else None


def line(one: dict[str, Any]) -> str:
    """One trial as a line of the table."""
    head = f"{one['kind']:15}{one['script']:10}"
    if "failed" in one:
        return f"{head}FAILED {one['failed']}"
    ratio = size_ratio(one)
    return (
        f"{head}{'yes' if right(one) else 'NO':4}{one['named'] or '-':30}"
        f"{one['size_seconds'] * 1e3:8.1f}{one['true_seconds'] * 1e3:8.1f}"
        f"{'-' if ratio is None else format(ratio, '.2f'):>7}{one['step_seconds'] * 1e3:8.1f}"
        f"{one['others_seconds'] * 1e3:8.1f}{one['unattributed_share']:7.1%}"
        f"{one['load_average']:6.1f}{one['seconds']:6.0f}"
    )


def print_verdict(found: list[dict[str, Any]]) -> None:
    """Print the score."""
    seeded = [one for one in found if KINDS[one["kind"]]]
    healthy = [one for one in found if not KINDS[one["kind"]]]
    ratios = [ratio for one in seeded if (ratio := size_ratio(one)) is not None]
    accurate = sum(abs(ratio - 1) <= TOLERANCE for ratio in ratios)
    print(
        f"right cause first in {sum(map(right, seeded))} of {len(seeded)}; size within "
        f"{TOLERANCE:.0%} in {accurate} of {len(ratios)}; healthy called healthy in "
        f"{sum(map(right, healthy))} of {len(healthy)}"
    )


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--kinds", default=",".join(KINDS), help="comma-separated [all]")
    parser.add_argument("--scripts", default=",".join(SCRIPTS), help="comma-separated [both]")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--repeat", type=int, default=1, help="trials of each kind and script")
    parser.add_argument("--minutes", type=float, default=60.0, help="begin no trial after this")
    parser.add_argument("--pairs", type=int, default=1, help="seeded and clean runs for the truth")
    parser.add_argument("--load", type=int, default=0, help="busy loops beside the jobs")
    parser.add_argument("--seed", type=int, default=1, help="order of the trials")
    parser.add_argument("--names-only", action="store_true", help="skip the true sizes")
    parser.add_argument("--stores", metavar="DIR", help="keep the launches in DIR")
    options = parser.parse_args()
    for name in options.kinds.split(","):
        if name not in KINDS:
            parser.error(f"unknown kind '{name}'; known: {', '.join(KINDS)}")
    trials = [
        (script, kind, number)
        for number in range(options.repeat)
        for kind in options.kinds.split(",")
        for script in options.scripts.split(",")
    ]
    random.Random(options.seed).shuffle(trials)
    known = {
        (one["script"], one["kind"], one["repetition"]): one
        for one in kept(options.json, "trials")
        if "failed" not in one
    }
    print(
        f"{'kind':15}{'script':10}{'ok':4}{'first':30}{'ms':>8}{'true':>8}{'ratio':>7}{'step':>8}"
        f"{'others':>8}{'rest':>7}{'load':>6}{'s':>6}",
        flush=True,
    )
    found: list[dict[str, Any]] = []
    began = time.monotonic()
    with beside(options.load):
        for key in trials:
            if key not in known and time.monotonic() - began > 60.0 * options.minutes:
                continue
            found.append(known.get(key) or attempted(*key, options))
            print(line(found[-1]), flush=True)
            keep({"trials": found}, options.json)
    if len(found) < len(trials):
        print(f"{len(trials) - len(found)} of {len(trials)} trials were not begun (--minutes)")
    print_verdict(found)
    finish({"trials": found}, options.json)


if __name__ == "__main__":
    main()
