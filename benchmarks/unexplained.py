"""Unattributed share of ``paceline explain``: five demos, and ResNet-20 under three frameworks.

Each repetition measures one process and two, and explains the two. Phases are instrumented if the
framework supports it; otherwise the parts of a step are timed separately. Target: at most 3 % of
the step unattributed in the median of the repetitions, and parts that sum to the step. ``--load N``
runs beside N busy loops. Frameworks must be installed first
(``paceline frameworks install tensorflow jax``). Takes about 15 minutes on two idle cores;
``--json FILE`` saves every repetition, and the same command resumes from it.

    python benchmarks/unexplained.py --json unexplained.json
    python benchmarks/unexplained.py --subjects demo --repetitions 2
"""

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from common import arguments, beside, finish, keep, kept, machine

LONGEST_SECONDS = 300.0
TARGET = 0.03
DEMO = "demo"


def paceline(*arguments: object) -> dict[str, Any]:
    """The JSON document of a command."""
    command = [sys.executable, "-m", "paceline", *map(str, arguments), "--json"]
    answer = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=LONGEST_SECONDS
    )
    return dict(json.loads(answer.stdout))


def measured(subject: str, seed: int, directory: Path) -> list[object]:
    """Measure the demo or a framework; return the arguments of ``explain``."""
    store = directory / "paceline.db"
    if subject == DEMO:
        paceline("demo", "--seed", seed, "--out", directory)
        (study,) = {
            one["study"]
            for one in paceline("study", "list", "--launches", "--store", store)["launches"]
        }
        return [study, "--store", store]
    inside = "phases" if subject.startswith("torch-ddp") else "difference"
    paceline(
        *("measure", "--model", "resnet20", "--batch", 64, "--framework", subject),
        *("-j", "1x1,1x2", "--instrument", f"none,{inside}", "--launches", 1, "--steps", 15),
        *("--seed", seed, "--study", "s", "--store", store),
    )
    return ["s", "--store", store]


def repetition(subject: str, seed: int) -> dict[str, Any]:
    """One explained measurement: the step and its unattributed share."""
    key = {"subject": subject, "repetition": seed}
    with tempfile.TemporaryDirectory() as directory:
        try:
            found = paceline("explain", *measured(subject, seed, Path(directory)))
        except subprocess.CalledProcessError as error:
            return {**key, "failed": error.stderr.strip()[-300:]}
        except subprocess.TimeoutExpired as error:
            return {**key, "failed": f"took longer than {error.timeout:.0f} s"}
        except (OSError, LookupError, ValueError) as error:
            return {**key, "failed": f"{type(error).__name__}: {error}"}
    items = {item["label"]: item["seconds"] for item in found["waterfall"]}
    step = found["observed_step_seconds"]
    return {
        **key,
        "step_seconds": step,
        "unexplained_share": items["unattributed"] / step,
        "sum_error": sum(item["seconds"] for item in found["waterfall"]) / step - 1.0,
        "verdict": found["verdict"],
        "waterfall": items,
        **machine(),
    }


def line(one: dict[str, Any]) -> str:
    """One repetition as a line of the table."""
    head = f"{one['subject']:16}{one['repetition']:>4}"
    if "failed" in one:
        return f"{head}  FAILED {one['failed']}"
    return (
        f"{head}{one['step_seconds'] * 1e3:10.1f}{one['unexplained_share']:+13.1%}"
        f"{one['sum_error']:+10.0e}{one['load_average']:7.1f}  {one['verdict']}"
    )


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument(
        "--subjects", default="demo,torch-ddp,tensorflow,jax", help="comma-separated"
    )
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--load", type=int, default=0, help="busy loops beside the measurements")
    options = parser.parse_args()
    repetitions = 1 if options.quick else options.repetitions
    known = {
        (one["subject"], one["repetition"]): one
        for one in kept(options.json, "repetitions")
        if "failed" not in one
    }
    found: list[dict[str, Any]] = []
    print(
        f"{'subject':16}{'run':>4}{'step ms':>10}{'unattributed':>13}{'sum':>10}{'load':>7}",
        flush=True,
    )
    with beside(options.load):
        for seed in range(1, repetitions + 1):
            for subject in options.subjects.split(","):
                found.append(known.get((subject, seed)) or repetition(subject, seed))
                print(line(found[-1]), flush=True)
                keep({"repetitions": found}, options.json)
    for subject in options.subjects.split(","):
        shares = [
            abs(one["unexplained_share"])
            for one in found
            if one["subject"] == subject and "failed" not in one
        ]
        if shares:
            median = statistics.median(shares)
            met = "met" if median <= TARGET else "MISSED"
            print(f"{subject}: median of {len(shares)}: {median:.1%} ({TARGET:.0%} {met})")
    finish({"repetitions": found}, options.json)


if __name__ == "__main__":
    main()
