"""Paceline measures, models and explains distributed deep-learning training.

Public names are imported on first use, so that ``import paceline`` loads no framework.
"""

import importlib
from typing import TYPE_CHECKING, Any

from paceline.errors import PacelineError

if TYPE_CHECKING:
    from paceline.hardware import Cluster
    from paceline.measurement.recording.record import record
    from paceline.predictor.api import bandwidth_for, predict, sweep, whatif
    from paceline.predictor.plan.plan import Plan
    from paceline.predictor.prediction import Prediction
    from paceline.predictor.search.api import advise
    from paceline.publications.predict_studies import reproduce
    from paceline.publications.run_studies import run_studies
    from paceline.store import Store
    from paceline.study import Study
    from paceline.study.api import calibrate, compare, explain, measure, utilisation, validate
    from paceline.workload.capture import capture
    from paceline.workload.workload import Workload

__version__ = "0.2.0"
__all__ = [
    "Cluster",
    "PacelineError",
    "Plan",
    "Prediction",
    "Store",
    "Study",
    "Workload",
    "__version__",
    "advise",
    "bandwidth_for",
    "calibrate",
    "capture",
    "compare",
    "explain",
    "measure",
    "predict",
    "record",
    "reproduce",
    "run_studies",
    "sweep",
    "utilisation",
    "validate",
    "whatif",
]

_HOMES = {
    "paceline.predictor.search.api": ("advise",),
    "paceline.study.api": (
        "calibrate",
        "compare",
        "explain",
        "measure",
        "utilisation",
        "validate",
    ),
    "paceline.predictor.api": ("bandwidth_for", "predict", "sweep", "whatif"),
    "paceline.publications.predict_studies": ("reproduce",),
    "paceline.publications.run_studies": ("run_studies",),
    "paceline.hardware": ("Cluster",),
    "paceline.measurement.recording.record": ("record",),
    "paceline.predictor.plan.plan": ("Plan",),
    "paceline.predictor.prediction": ("Prediction",),
    "paceline.store": ("Store",),
    "paceline.study": ("Study",),
    "paceline.workload.capture": ("capture",),
    "paceline.workload.workload": ("Workload",),
}
_LAZY = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'paceline' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*globals(), *_LAZY])
