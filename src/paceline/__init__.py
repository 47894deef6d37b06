"""Paceline measures, models and explains distributed deep-learning training.

Names are loaded on first use, so that ``import paceline`` stays quick and loads no framework.
"""

import importlib
from typing import TYPE_CHECKING, Any

from paceline.errors import PacelineError

if TYPE_CHECKING:
    from paceline.measurement.recording import record
    from paceline.predictor.predict import predict
    from paceline.workload.capture import capture

__version__ = "0.2.0"
__all__ = ["PacelineError", "__version__", "capture", "predict", "record"]

_LAZY = {
    "capture": "paceline.workload.capture",
    "predict": "paceline.predictor.predict",
    "record": "paceline.measurement.recording",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'paceline' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*globals(), *_LAZY])
