"""What is killed: commands that run training, without a framework so that they are quick.

python victims.py measure|long|record|run STORE [STUDY]
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
    study = sys.argv[3] if len(sys.argv) > 3 else "study"
    with Store(store) as opened:
        known = opened.design(study) is not None
        jobs = [quick.job(), quick.job(world_size=2)]
        design = None if known else Design.randomised(jobs, LAUNCHES // 2, 1)
        run_study(opened, study, design)


def long(store: Path) -> None:
    """A study of `LONG` launches that start no processes: the run loop and the store only."""
    sys.path.insert(0, str(TESTS))
    from builders import an_outcome
    from measurement import quick

    from paceline.measurement import study_runner
    from paceline.measurement.run_job import new_launch
    from paceline.store import Launch, Store
    from paceline.store.launch import new_launch_id

    def recorded(job, opened, study, timeout, port, marks, detect_warmup) -> Launch:
        launch = new_launch(job, study, marks, new_launch_id(), {"load_average": 0.0})
        opened.start(launch)
        opened.finish(launch.id, an_outcome())
        return opened.launch(launch.id)

    study_runner.run_job = recorded
    with Store(store) as opened:
        known = opened.design("study") is not None
        jobs = [quick.job(), quick.job(world_size=2)]
        launches = int(sys.argv[3]) // 2
        design = None if known else study_runner.Design.randomised(jobs, launches, 1)
        study_runner.run_study(opened, "study", design)


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
