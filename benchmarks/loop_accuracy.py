"""Error of the demo's prediction: predicted against measured throughput of 2 processes.

Each repetition is a complete demo (probe, launches in random order, prediction without any
synchronised launch). The error of perfect scaling and the contention of the machine (wall over CPU
time of one process, load average) are printed too. Target: median absolute error of at most 8 %.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from common import arguments, finish, machine


def paceline_json(*arguments: object) -> dict[str, Any]:
    command = [sys.executable, "-m", "paceline", *map(str, arguments), "--json"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(answer.stdout))


def one_demo(launches: int, steps: int, seed: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as directory:
        demo = ["--launches", launches, "--steps", steps, "--seed", seed, "--out", directory]
        result = paceline_json("demo", *demo)
        listed = paceline_json(
            "study", "list", "--launches", "--store", Path(directory) / "paceline.db"
        )
    here = next(one for one in result["comparisons"] if one["measured_samples_per_second"])
    alone = [
        launch["wall_over_cpu"]
        for launch in listed["launches"]
        if launch["processes"] == 1 and launch["status"] == "finished"
    ]
    perfect = here["perfect_scaling_samples_per_second"] / here["measured_samples_per_second"] - 1
    measured = here["measured_samples_per_second"]
    return {
        "error": here["relative_error"],
        "perfect_scaling_error": perfect,
        "covered": here["low_samples_per_second"] <= measured <= here["high_samples_per_second"],
        "predicted_samples_per_second": here["predicted_samples_per_second"],
        "measured_samples_per_second": measured,
        "wall_over_cpu": statistics.fmean(alone),
        "load_average": machine()["load_average"],
    }


def main() -> None:
    options = arguments(__doc__ or "").parse_args()
    repetitions, launches, steps = (2, 1, 4) if options.quick else (5, 3, 7)
    figures: dict[str, Any] = {"machine": machine(), "repetitions": []}
    print(f"loop accuracy: {repetitions} demos of ResNet-44 on 2 processes")
    print("            predicted  measured   error   perfect scaling   wall/CPU   load")
    for seed in range(1, repetitions + 1):
        one = one_demo(launches, steps, seed)
        figures["repetitions"].append(one)
        print(
            f"  demo {seed}:   {one['predicted_samples_per_second']:7.1f}   "
            f"{one['measured_samples_per_second']:7.1f}  {one['error']:+6.1%}   "
            f"{one['perfect_scaling_error']:+15.1%}   {one['wall_over_cpu']:8.2f}   "
            f"{one['load_average']:4.1f}",
            flush=True,
        )
    errors = [abs(one["error"]) for one in figures["repetitions"]]
    perfect = [abs(one["perfect_scaling_error"]) for one in figures["repetitions"]]
    figures["median_absolute_error"] = statistics.median(errors)
    figures["median_absolute_error_of_perfect_scaling"] = statistics.median(perfect)
    covered = sum(one["covered"] for one in figures["repetitions"])
    print(
        f"median absolute error: {statistics.median(errors):.1%} (target 8 %), spread "
        f"{min(errors):.1%} to {max(errors):.1%}; perfect scaling {statistics.median(perfect):.1%}"
    )
    print(f"90 % interval covered {covered} of {repetitions}")
    finish(figures, options.json)


if __name__ == "__main__":
    main()
