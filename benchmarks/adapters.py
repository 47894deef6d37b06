"""What each adapter costs: its throughput over that of a minimal script in the same framework.

Launches of the two alternate (which goes first is random in each pair), on ResNet-20 and one
process, since what a loop costs does not depend on how many there are. The ratio of a pair is the
script's step time over the adapter's: 1 means no cost, the target is at least 0.98 for each
framework. Scripts are in handwritten/, each the shortest honest loop a person would write.
Frameworks without an environment are left out, and said so.
"""

import json
import random
import tempfile
from pathlib import Path
from typing import Any

from common import arguments, finish, machine, ratio_interval

from paceline.analyse.statistics import mean_step_seconds
from paceline.errors import PacelineError
from paceline.measure.frameworks import check_runnable, framework, interpreter
from paceline.measure.job import Job
from paceline.measure.launcher import launch_local
from paceline.measure.run import run_job, thread_variables
from paceline.store import Store
from paceline.workload import zoo

SCRIPTS = Path(__file__).parent / "handwritten"
TARGET = 0.98
WARMUP_STEPS = 3


def through_adapter(store: Store, name: str, steps: int, batch: int) -> float:
    job = Job(
        model="resnet20",
        graph=zoo.build("resnet20").to_json(),
        batch_per_rank=batch,
        framework=name,
        steps=steps,
        warmup_steps=WARMUP_STEPS,
    )
    return mean_step_seconds(run_job(job, store, "adapters"))


def by_hand(name: str, script: Path, steps: int, batch: int) -> float:
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        sizes = [str(steps), str(WARMUP_STEPS), str(batch)]
        ended = launch_local(
            [interpreter(framework(name)), str(script), str(place / "out.json"), *sizes],
            1,
            place,
            timeout_seconds=600,
            environment=thread_variables(1),
        )
        if ended.reason:
            log = ended.ranks[0].log.read_text(errors="replace")
            raise SystemExit(f"{script.name} failed: {ended.reason}\n{log[-2000:]}")
        seconds: list[float] = json.loads((place / "out.json").read_text())
    return sum(seconds) / len(seconds)


def compare(store: Store, name: str, pairs: int, steps: int, batch: int) -> dict[str, Any]:
    order = random.Random(name)
    script = SCRIPTS / f"{name.replace('-', '_')}_script.py"
    ratios = []
    for pair in range(pairs):
        seconds = {}
        sides = ["adapter", "script"]
        order.shuffle(sides)
        for side in sides:
            seconds[side] = (
                through_adapter(store, name, steps, batch)
                if side == "adapter"
                else by_hand(name, script, steps, batch)
            )
        ratios.append(seconds["script"] / seconds["adapter"])
        print(
            f"  {name} pair {pair + 1}/{pairs}: script {seconds['script'] * 1e3:.1f} ms, "
            f"adapter {seconds['adapter'] * 1e3:.1f} ms",
            flush=True,
        )
    mean, low, high = ratio_interval(ratios)
    verdict = "reached" if mean >= TARGET else "missed"
    print(f"{name}: ratio {mean:.3f} [{low:.3f}, {high:.3f}], target {TARGET} {verdict}")
    return {"ratio": mean, "low": low, "high": high, "pairs": ratios}


def main() -> None:
    parser = arguments(__doc__ or "")
    known = sorted(path.stem.removesuffix("_script") for path in SCRIPTS.glob("*_script.py"))
    names = [name.replace("_", "-") for name in known]
    parser.add_argument("--frameworks", default=",".join(names), help="names by commas")
    options = parser.parse_args()
    pairs, steps, batch = (2, 4, 16) if options.quick else (8, 12, 64)
    figures: dict[str, Any] = {"machine": machine(), "target": TARGET, "frameworks": {}}
    print(f"adapters: ResNet-20, batch {batch}, {steps} steps, {pairs} pairs, 1 process")
    print(f"load average: {figures['machine']['load_average']}")
    with tempfile.TemporaryDirectory() as directory, Store(Path(directory) / "s.db") as store:
        for name in options.frameworks.split(","):
            try:
                check_runnable(framework(name))
            except PacelineError as error:
                print(f"{name}: left out: {error}")
                continue
            figures["frameworks"][name] = compare(store, name, pairs, steps, batch)
    finish(figures, options.json)


if __name__ == "__main__":
    main()
