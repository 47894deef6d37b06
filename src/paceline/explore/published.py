"""Published measurements of the same model and device, drawn over a prediction."""

import threading
from functools import cache
from typing import TYPE_CHECKING, Any

from paceline.predictor.prediction import Prediction

if TYPE_CHECKING:
    from paceline.validation.published_row import Configuration

BATCH_RATIO = 1.5
"""Largest ratio of batches per device at which a row is similar."""

_made = threading.Event()


def published_points(prediction: Prediction, *, waits: bool = True) -> list[dict[str, Any]]:
    """Rows of the same network, device and numeric width with a similar batch per device.

    Without ``waits`` the result is empty until the index of all rows is built.
    """
    from paceline.predictor.uncertainty.covariates import width_of

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
    """Read all rows. This takes seconds, so the server does it in a thread."""
    _rows()
    _made.set()


@cache
def _rows() -> "dict[tuple[str, str, str], list[tuple[float, float, Configuration]]]":
    """Batch per device, samples/s and the row itself, by model, device and numeric width."""
    from paceline.errors import PacelineError
    from paceline.predictor.uncertainty.covariates import width_of
    from paceline.validation.published_job import job_of
    from paceline.validation.reference_data import reference_table
    from paceline.validation.row_step_model import measured_seconds

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
