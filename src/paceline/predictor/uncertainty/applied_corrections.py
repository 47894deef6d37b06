"""Stage 4, corrections: factors on the modelled step from measurements and fitted effects."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from paceline.predictor.evidence import Colocated
from paceline.predictor.prediction_inputs import PredictionInputs
from paceline.predictor.schedule.jitter import (
    FloatArray,
    expected_maximum_lognormal,
    slowest_factors,
)
from paceline.predictor.uncertainty.step_corrections import StepCorrections


@dataclass(frozen=True)
class AppliedCorrections:
    """Factors on the modelled step of one job.

    ``work_scale`` multiplies all layer times, ``modelled_factor`` those that were not measured.
    ``sharing_factor`` is the slowdown of a device by the others of its node, ``slowest_factor`` the
    computing time of the slowest device over the mean. ``rest_factor`` multiplies input and update.
    ``colocated`` is measured contention within a node, None if unknown.
    """

    step: StepCorrections
    work_scale: float
    modelled_factor: float
    sharing_factor: float
    slowest_factor: float
    rest_factor: float
    colocated: Colocated | None

    @property
    def compute_factor(self) -> float:
        """Factor on all layer times of the slowest device."""
        return self.work_scale * self.sharing_factor * self.slowest_factor


def apply_corrections(
    job: PredictionInputs, corrections: StepCorrections, work_scale: float = 1.0
) -> AppliedCorrections:
    """The factors of ``corrections`` and of the job's evidence.

    ``work_scale`` is the factor that reproduces a measured step (`measured_scale`).
    """
    evidence, nodes = job.evidence, job.cluster.nodes
    is_known = evidence.alone_seconds is not None or evidence.baseline is not None
    colocated = colocated_processes(job)
    slowest = slowest_factor(job, corrections)
    sharing = 1.0 if colocated is None else colocated.slowdown
    # Contention on one machine affects the whole step, jitter only computing.
    waiting = slowest if colocated is not None and nodes == 1 else 1.0
    return AppliedCorrections(
        corrections,
        work_scale,
        1.0 if is_known or job.scale is not None else corrections.compute_factor,
        sharing,
        slowest,
        sharing * waiting,
        colocated,
    )


def colocated_processes(job: PredictionInputs) -> Colocated | None:
    """Measured contention among the processes of one node; None if unknown."""
    processes = min(job.plan.devices, job.cluster.devices_per_node)
    return job.evidence.colocation.get(processes) if processes > 1 else None


def variation_of(job: PredictionInputs, corrections: StepCorrections) -> float | None:
    """Coefficient of variation of workers' times; None if unknown."""
    if job.evidence.spread is not None:
        return job.evidence.spread
    return corrections.variation_on(job.cluster.nodes)


def slowest_factor(job: PredictionInputs, corrections: StepCorrections) -> float:
    """Computing time of the slowest of all devices over the mean one."""
    if _is_asynchronous(job):
        return 1.0
    colocated = colocated_processes(job)
    if colocated is not None and job.cluster.nodes == 1:
        return colocated.slowest
    variation = variation_of(job, corrections)
    return _slowest_of(variation, job.plan.devices) if variation else 1.0


def slowest_among(
    job: PredictionInputs, corrections: StepCorrections, workers: FloatArray
) -> FloatArray:
    """The same factor for other numbers of devices on separate machines."""
    variation = variation_of(job, corrections)
    if not variation or _is_asynchronous(job):
        return np.ones(1)
    return slowest_factors(variation, workers)


def _is_asynchronous(job: PredictionInputs) -> bool:
    return (job.plan.synchronisation or job.framework.synchronisation).asynchronous


@lru_cache(maxsize=4096)
def _slowest_of(variation: float, workers: int) -> float:
    return float(expected_maximum_lognormal(1.0, variation, workers))
