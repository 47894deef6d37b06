"""What is killed: commands that run training, without a framework so that they are quick.

python victims.py measure|study|record|run STORE
"""

import runpy
import subprocess
import sys
import time
from pathlib import Path

TESTS = Path(__file__).parents[1]
LAUNCHES = 8
STEP_SECONDS = 0.02

LEAVES_ITS_SESSION = "import os, time; os.setsid(); time.sleep(600)"
"""A child as a data loader or a daemon may be: it leaves the session of its parent."""


def measure(store: Path) -> None:
    """``paceline measure`` of the quick framework, begun or resumed."""
    sys.path.insert(0, str(TESTS))
    from measurement import quick

    from paceline.frameworks.framework_registry import frameworks
    from paceline.measurement.study_runner import Design, run_study
    from paceline.store import Store

    frameworks()["quick"] = quick.ADAPTER
    with Store(store) as opened:
        known = opened.design("study") is not None
        jobs = [quick.job(), quick.job(world_size=2)]
        design = None if known else Design.randomised(jobs, LAUNCHES // 2, 1)
        run_study(opened, "study", design)


def record(store: Path) -> None:
    """A script with `paceline.record` in it."""
    import paceline

    with paceline.record(model="victim", batch=2, store=store) as recording:
        for _ in range(60):
            time.sleep(STEP_SECONDS)
            recording.step(loss=1.0)


def run(store: Path) -> None:
    """``paceline run`` of this file's own script, which has a child that leaves its session."""
    own = [sys.executable, __file__, "script", str(store)]
    sys.argv = ["paceline", "run", "--store", str(store), "--study", "run", "--", *own]
    runpy.run_module("paceline", run_name="__main__")


def script(store: Path) -> None:
    """What ``run`` runs: a recorded loop beside a process of its own."""
    subprocess.Popen([sys.executable, "-c", LEAVES_ITS_SESSION, str(store)])
    import paceline

    with paceline.record(batch=2) as recording:
        for _ in range(60):
            time.sleep(STEP_SECONDS)
            recording.step()


if __name__ == "__main__":
    globals()[sys.argv[1]](Path(sys.argv[2]))
