"""Paceline measures, models and explains distributed deep-learning training.

Names are loaded on first use, so that ``import paceline`` stays quick and loads no framework.
"""

import importlib
from typing import TYPE_CHECKING, Any

from paceline.errors import PacelineError

if TYPE_CHECKING:
    from paceline.api.advice import advise
    from paceline.api.measuring import (
        calibrate,
        compare,
        explain,
        measure,
        utilisation,
        validate,
    )
    from paceline.api.predictions import bandwidth_for, predict, sweep, whatif
    from paceline.api.reproduction import reproduce
    from paceline.api.studies_here import run_studies
    from paceline.hardware import Cluster
    from paceline.measurement.recording import record
    from paceline.plan import Plan
    from paceline.predictor.prediction import Prediction
    from paceline.store import Store
    from paceline.study import Study
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
    "paceline.api.advice": ("advise",),
    "paceline.api.measuring": (
        "calibrate",
        "compare",
        "explain",
        "measure",
        "utilisation",
        "validate",
    ),
    "paceline.api.predictions": ("bandwidth_for", "predict", "sweep", "whatif"),
    "paceline.api.reproduction": ("reproduce",),
    "paceline.api.studies_here": ("run_studies",),
    "paceline.hardware": ("Cluster",),
    "paceline.measurement.recording": ("record",),
    "paceline.plan": ("Plan",),
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
