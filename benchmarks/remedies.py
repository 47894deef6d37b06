"""Remedies of ``paceline explain`` tried for real: predicted beside measured saving.

Seeds a bottleneck of ``seeds/``, explains it, and tries each remedy that ``explain`` offers with
``--try``: pairs of launches without and with it, alternately. Target: no remedy that costs time
beyond its interval. Takes about 20 minutes on two idle cores; no case begins after ``--minutes``.
With ``--json`` the same command resumes.

    python benchmarks/remedies.py --minutes 25 --json remedies.json
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from common import arguments, finish, keep, kept, machine

from seeded_bottlenecks import STEPS, TrialError, explained, output

CASES = (
    *(("vision", kind) for kind in ("slow_input", "threads", "tiny_buckets", "accumulate")),
    *(("sequence", kind) for kind in ("threads", "tiny_buckets", "accumulate")),
    *(("vision", kind) for kind in ("large_gradient", "large_tensor", "cpu_input")),
    *(("sequence", kind) for kind in ("large_gradient", "large_tensor")),
)

_FAILURES = (TrialError, OSError, LookupError, ValueError)


def tried(script: str, kind: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Each remedy of a seeded job, with its predicted and measured saving."""
    key = {"script": script, "kind": kind}
    with tempfile.TemporaryDirectory() as directory:
        store = Path(directory) / "remedies.db"
        try:
            found = explained(script, kind, store, options)
        except _FAILURES as error:
            return [{**key, "failed": str(error)}]
        remedies = dict.fromkeys(one["try"] for one in found["findings"] if one["try"])
        rows = []
        for remedy in remedies:
            command = ["explain", "job", "--store", str(store), "--try", remedy]
            command += ["--pairs", str(options.pairs), "--json"]
            try:
                done = json.loads(output(sys.executable, "-m", "paceline", *command))
                rows.append({**key, **done["tried"][0], **machine()})
            except _FAILURES as error:
                rows.append({**key, "failed": f"--try {remedy}: {error}"})
    return rows or [{**key, "try": ""}]


def line(one: dict[str, Any]) -> str:
    head = f"{one['kind']:15}{one['script']:10}"
    if "failed" in one:
        return f"{head}FAILED {one['failed']}"
    if not one["try"]:
        return f"{head}no remedy that can be tried"
    width = one["half_width_seconds"]
    measured = f"{one['measured_seconds'] * 1e3:.1f} +- {(width or 0.0) * 1e3:.1f}"
    predicted = one["predicted_seconds"]
    shown = "-" if predicted is None else f"{predicted * 1e3:.1f}"
    verdict = "COSTS TIME" if costs(one) else ""
    return (
        f"{head}{one['try']:28}{one['step_seconds'] * 1e3:9.1f}{shown:>11}{measured:>16}"
        f"{one['load_average']:6.1f} {verdict}"
    )


def costs(one: dict[str, Any]) -> bool:
    """Whether a remedy makes the step longer beyond its interval."""
    return bool(one["measured_seconds"] < -(one["half_width_seconds"] or 0.0))


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=60.0, help="begin no case after this")
    options = parser.parse_args()
    found = [one for one in kept(options.json, "remedies") if "failed" not in one]
    began = time.monotonic()
    known = {(one["script"], one["kind"]) for one in found}
    print(
        f"{'kind':15}{'script':10}{'remedy':28}{'step ms':>9}{'predicted':>11}{'measured ms':>16}"
        f"{'load':>6}",
        flush=True,
    )
    for script, kind in CASES:
        if (script, kind) not in known and time.monotonic() - began <= 60.0 * options.minutes:
            found += tried(script, kind, options)
            keep({"remedies": found}, options.json)
        for one in found:
            if (one["script"], one["kind"]) == (script, kind):
                print(line(one), flush=True)
    measured = [one for one in found if one.get("try")]
    print(f"{sum(map(costs, measured))} of {len(measured)} remedies cost time")
    finish({"remedies": found}, options.json)


if __name__ == "__main__":
    main()
