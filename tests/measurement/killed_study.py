"""A study of fake launches of 0.2 s each, begun or gone on with: python killed_study.py STORE."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from measurement import quick

from paceline.frameworks.framework_registry import frameworks
from paceline.measurement.study_design import Design
from paceline.measurement.study_runner import run_study
from paceline.store import Store

if __name__ == "__main__":
    frameworks()["quick"] = quick.ADAPTER
    kinds = [quick.job(steps=15, batch_per_rank=batch) for batch in (1, 2, 3, 4)]
    with Store(Path(sys.argv[1])) as store:
        run_study(store, "study", Design.randomised(kinds, 6, 1), extend=True)
