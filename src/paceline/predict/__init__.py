"""Workload x hardware x plan -> step: layer costs, collectives, schedules, memory.

``paceline.predict(workload, cluster, plan)`` predicts one step: the package can be called,
because the function that users want has the name of the package that holds it.
"""

import sys
from types import ModuleType
from typing import Any

from paceline.predict.data_parallel import LayerTime, data_parallel_step
from paceline.predict.prediction import Prediction
from paceline.predict.predictor import predict

__all__ = ["LayerTime", "Prediction", "data_parallel_step", "predict"]


class _Callable(ModuleType):
    """A package that is called like its main function."""

    def __call__(self, *arguments: Any, **options: Any) -> Prediction:
        return predict(*arguments, **options)


sys.modules[__name__].__class__ = _Callable
