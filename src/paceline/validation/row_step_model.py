"""Published rows as inputs of the predictor, in the same way as any prediction."""

from dataclasses import replace
from functools import lru_cache

from paceline.predictor.evidence import Baseline, Evidence
from paceline.predictor.partition.replica import Replica
from paceline.predictor.predict import prepared_on, replica_of
from paceline.predictor.step_model import StepModel
from paceline.predictor.uncertainty.covariates import Covariates, covariates_of
from paceline.predictor.uncertainty.step_corrections import NO_CORRECTIONS
from paceline.validation.published_job import job_of
from paceline.validation.published_row import Configuration, PublishedRow

_WHAT_COMPUTES = (
    *("model", "hidden", "layers", "heads", "kv_heads", "feed_forward", "vocabulary", "n_params"),
    *("device", "precision", "task"),
)
"""Fields of a row that determine the computation time of a device."""


def measured_seconds(row: PublishedRow) -> float:
    """Seconds per optimiser step of a row."""
    job = job_of(row.configuration)
    return job.samples * job.units_per_sample / row.throughput


def prepared_row(configuration: Configuration) -> StepModel:
    """The step of a row without measurements and corrections."""
    return _prepared(configuration.unnamed)


def baseline_evidence(baseline: PublishedRow, row: Configuration) -> Evidence:
    """The measured baseline of a group, as evidence for another row of it.

    If the model or device of the row is unknown, the baseline is assumed to have the same.
    """
    known = baseline.configuration
    if job_of(row).cold_obstacle:
        known = replace(known, **{name: getattr(row, name) for name in _WHAT_COMPUTES})
    return Evidence(baseline=Baseline(prepared_row(known), measured_seconds(baseline)))


def row_replica(configuration: Configuration) -> Replica:
    """The replica of a row, cached."""
    return prepared_row(configuration).replica


def row_covariates(configuration: Configuration) -> Covariates:
    """Properties of a row that corrections may depend on, without its measured speed."""
    return _covariates(configuration.unnamed)


@lru_cache(maxsize=16384)
def _prepared(configuration: Configuration) -> StepModel:
    job = job_of(configuration)
    replica = replica_of(job.workload, job.cluster, job.plan)
    return prepared_on(replica, corrections=NO_CORRECTIONS)


@lru_cache(maxsize=16384)
def _covariates(configuration: Configuration) -> Covariates:
    job = job_of(configuration)
    assert job.plan.framework is not None
    return covariates_of(job.workload, job.cluster, job.plan.framework, job.program)
