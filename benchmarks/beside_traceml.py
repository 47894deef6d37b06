"""Verdicts of TraceML and of ``paceline explain`` on the same seeded scripts, side by side.

``pip install traceml-ai`` in an environment with PyTorch, and give its ``traceml`` program. Two
calls of TraceML are added to a copy of ``seeds/vision.py``; Paceline runs the script as it is.

    python benchmarks/beside_traceml.py --traceml VENV/bin/traceml --json traceml.json
"""

import argparse
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from common import arguments, finish, keep, kept, machine

from seeded_bottlenecks import LONGEST_SECONDS, SEEDS, STEPS, TrialError, explained

KINDS = (
    *("healthy", "slow_input", "rank_forward", "uneven", "checkpoint", "drift", "metrics"),
    *("threads", "accumulate", "blocked_ddp"),
)


def with_traceml(script: str) -> str:
    """The script with the two calls that TraceML needs; every step is a traced one."""
    script = script.replace("import torch\n", "import torch\nimport traceml_ai\n", 1)
    script = script.replace("def main():\n", 'def main():\n    traceml_ai.init(mode="auto")\n', 1)
    before, _, rest = script.partition("        begun = time.perf_counter()\n")
    body, end, after = rest.partition("    if RANK == 0:\n        counted")
    inside = "".join(f"    {line}\n" if line else "\n" for line in body.rstrip("\n").split("\n"))
    begin = "        with traceml_ai.trace_step(model):\n            begun = time.perf_counter()\n"
    return f"{before}{begin}{inside}{end}{after}"


def traceml(kind: str, options: argparse.Namespace) -> str:
    """TraceML's verdict on two processes."""
    with tempfile.TemporaryDirectory() as directory:
        script = Path(directory) / "train.py"
        script.write_text(with_traceml((SEEDS / "vision.py").read_text()))
        command = [options.traceml, "run", "--nproc-per-node", "2", "--run-name", kind]
        done = subprocess.run(
            [*command, script, "--args", kind, str(options.steps)],
            cwd=directory,
            capture_output=True,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            timeout=LONGEST_SECONDS,
        )
        summary = Path(directory) / "logs" / kind / "final_summary.txt"
        if not summary.exists():
            raise TrialError(f"TraceML wrote no summary: {done.stderr[-200:]}")
        rows = [row.strip("|+- \n") for row in summary.read_text().splitlines()]
        told = ("Verdict", "Why", "Evidence", "Next")
        return " ".join(row for row in rows if row.startswith(told))[:400]


def compared(kind: str, options: argparse.Namespace) -> dict[str, Any]:
    """Both verdicts on one kind."""
    found: dict[str, Any] = {"kind": kind, **machine()}
    try:
        found["traceml"] = traceml(kind, options)
    except (TrialError, OSError, subprocess.SubprocessError) as error:
        found["traceml"] = f"failed: {error}"
    with tempfile.TemporaryDirectory() as directory:
        try:
            document = explained("vision", kind, Path(directory) / "beside.db", options)
            found["paceline"] = document["verdict"]
        except (TrialError, OSError, LookupError, ValueError) as error:
            found["paceline"] = f"failed: {error}"
    return found


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--traceml", required=True, help="the program of TraceML")
    parser.add_argument("--steps", type=int, default=STEPS)
    options = parser.parse_args()
    found: list[dict[str, Any]] = kept(options.json, "verdicts")
    known = {one["kind"]: one for one in found}
    for kind in KINDS:
        if kind not in known:
            known[kind] = compared(kind, options)
            found.append(known[kind])
            keep({"verdicts": found}, options.json)
        one = known[kind]
        print(f"{kind}\n  TraceML:  {one['traceml']}\n  Paceline: {one['paceline']}", flush=True)
    finish({"verdicts": found}, options.json)


if __name__ == "__main__":
    main()
