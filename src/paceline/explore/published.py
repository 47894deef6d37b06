"""Published measurements of the same model on the same device, to be drawn over a prediction."""

import threading
from functools import cache
from typing import TYPE_CHECKING, Any

from paceline.predictor.prediction import Prediction

if TYPE_CHECKING:
    from paceline.analyse.validation.measurement import Configuration

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
        {
            "devices": row.devices,
            "samples_per_second": rate,
            "id": row.id,
            "framework": row.framework,
            "family": row.family,
            "group": row.group,
        }
        for batch, rate, row in _rows().get((workload.graph.name, device, width_of(workload)), ())
        if 1 / BATCH_RATIO <= batch / own <= BATCH_RATIO
    ]


def make_index() -> None:
    """Read all rows, which takes seconds; a server does it beside its first answers."""
    _rows()
    _made.set()


@cache
def _rows() -> "dict[tuple[str, str, str], list[tuple[float, float, Configuration]]]":
    """Batch per device, samples/s and the row itself, by model, device and width of numbers."""
    from paceline.analyse.validation.jobs import job_of
    from paceline.analyse.validation.reference import reference_table
    from paceline.analyse.validation.rows import measured_seconds
    from paceline.errors import PacelineError
    from paceline.predictor.corrections.covariates import width_of

    found: dict[tuple[str, str, str], list[tuple[float, float, Configuration]]] = {}
    for row in reference_table().measurements:
        configuration = row.configuration
        try:
            job = job_of(configuration)
            seconds = measured_seconds(row)
        except PacelineError:
            continue
        samples = job.workload.batch * job.plan.dp
        key = (job.workload.graph.name, job.cluster.device.name, width_of(job.workload))
        entry = (samples / configuration.devices, samples / seconds, configuration)
        found.setdefault(key, []).append(entry)
    return found
