"""How far measured peaks of memory lie from predicted ones, on layouts that ran."""

import math
from collections.abc import Sequence

import numpy as np

from paceline.analyse.validation.measurement import Measurement
from paceline.analyse.validation.rows import row_replica
from paceline.errors import PacelineError
from paceline.predictor.corrections.hierarchy import Uncertain
from paceline.predictor.plan_memory import plan_memory
from paceline.predictor.predict import prepared_on
from paceline.predictor.step_corrections import NO_CORRECTIONS


def memory_error(layouts: Sequence[Measurement]) -> Uncertain:
    """Mean and variance of log(measured / predicted peak), tensor parallel inside a node.

    Layouts whose tensor-parallel devices reach across nodes are nobody's choice, and their peaks
    scatter three times as much.
    """
    errors = []
    for row in layouts:
        job = row.configuration
        if row.failed or row.memory_bytes is None or (job.tp or 1) > job.devices_per_node:
            continue
        try:
            predicted = predicted_bytes(row)
        except PacelineError:
            continue
        errors.append(math.log(row.memory_bytes / predicted))
    return Uncertain(float(np.mean(errors)), float(np.var(errors)))


def predicted_bytes(row: Measurement) -> float:
    """Peak memory of the fullest device, as predicted."""
    prepared = prepared_on(row_replica(row.configuration), corrections=NO_CORRECTIONS)
    memory = plan_memory(prepared.replica, prepared.chunks, prepared.synchronisation)
    return float(memory.total_bytes)
