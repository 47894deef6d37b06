"""Studies of the quick worker, in this process or in one that can be killed."""

import sys
from pathlib import Path

from paceline.frameworks.adapter import FrameworkAdapter
from paceline.frameworks.framework_registry import frameworks
from paceline.measurement.job import Job
from paceline.measurement.study_runner import Design, run_study
from paceline.store import Store

GRAPH = {
    "schema": "paceline/graph/1",
    "name": "nothing",
    "inputs": {"x": {"shape": [1]}},
    "nodes": [{"name": "same", "op": "activation", "inputs": ["x"], "function": "relu"}],
    "output": "same",
}
WORKER = Path(__file__).parent / "quick_worker.py"


ADAPTER = FrameworkAdapter("quick", WORKER, "json", None, profile="torch-ddp")


def job(behaviour="well", **changes):
    fields = {
        "model": "nothing",
        "graph": GRAPH,
        "batch_per_rank": 4,
        "framework": "quick",
        "steps": 5,
        "warmup_steps": 1,
        "data": {"kind": behaviour},
    }
    return Job(**{**fields, **changes})


if __name__ == "__main__":
    frameworks()["quick"] = ADAPTER
    with Store(Path(sys.argv[1])) as store:
        known = store.design("study") is not None
        design = None if known else Design.randomised([job(), job(world_size=2)], 6, 1)
        run_study(store, "study", design)
