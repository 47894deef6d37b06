"""Published measurements of the same model on the same device, to be drawn over a prediction."""

import threading
from functools import cache
from typing import Any

from paceline.predictor.prediction import Prediction

BATCH_RATIO = 1.5
"""Rows whose batch per device differs by more are of another job."""

_made = threading.Event()


def published_points(prediction: Prediction, *, waits: bool = True) -> list[dict[str, Any]]:
    """Rows of the same network, device, width of numbers and about the same batch per device.

    Unless it ``waits``, none while the index of all rows is still being made.
    """
    from paceline.predictor.corrections.covariates import width_of

    workload, device = prediction.workload, prediction.cluster.device.name
    own = prediction.samples_per_step / prediction.devices
    if not waits and not _made.is_set():
        return []
    return [
        {"devices": devices, "samples_per_second": rate, "id": name, "framework": framework}
        for batch, devices, rate, name, framework in _rows().get(
            (workload.graph.name, device, width_of(workload)), ()
        )
        if 1 / BATCH_RATIO <= batch / own <= BATCH_RATIO
    ]


def make_index() -> None:
    """Read all rows, which takes seconds; a server does it beside its first answers."""
    _rows()
    _made.set()


@cache
def _rows() -> dict[tuple[str, str, str], list[tuple[float, int, float, str, str]]]:
    """Batch per device, devices, samples/s, id and framework of rows by model, device, width."""
    from paceline.analyse.validation.jobs import job_of
    from paceline.analyse.validation.reference import reference_table
    from paceline.analyse.validation.rows import measured_seconds
    from paceline.errors import PacelineError
    from paceline.predictor.corrections.covariates import width_of

    found: dict[tuple[str, str, str], list[tuple[float, int, float, str, str]]] = {}
    for row in reference_table().measurements:
        configuration = row.configuration
        try:
            job = job_of(configuration)
            seconds = measured_seconds(row)
        except PacelineError:
            continue
        samples = job.workload.batch * job.plan.dp
        key = (job.workload.graph.name, job.cluster.device.name, width_of(job.workload))
        entry = (
            samples / configuration.devices,
            configuration.devices,
            samples / seconds,
            configuration.id,
            configuration.framework,
        )
        found.setdefault(key, []).append(entry)
    return found
