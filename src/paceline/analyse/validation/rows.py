"""Published rows as prepared steps: the same road as any prediction."""

from functools import lru_cache

from paceline.analyse.validation.jobs import job_of
from paceline.analyse.validation.measurement import Configuration, Measurement
from paceline.predictor.corrections.covariates import Covariates, covariates_of
from paceline.predictor.evidence import Baseline, Evidence
from paceline.predictor.predict import prepare
from paceline.predictor.prepared import PreparedStep
from paceline.predictor.step_corrections import NO_CORRECTIONS


def measured_seconds(row: Measurement) -> float:
    """Seconds per optimiser step of a row."""
    job = job_of(row.configuration)
    return job.samples * job.units_per_sample / row.throughput


def prepared_row(configuration: Configuration) -> PreparedStep:
    """The step of a row, nothing of it measured."""
    return _prepared(configuration.unnamed)


def prepared_from_baseline(configuration: Configuration, baseline: Measurement) -> PreparedStep:
    """The step of a row, given the measured baseline of its group."""
    job = job_of(configuration)
    known = Baseline(prepared_row(baseline.configuration), measured_seconds(baseline))
    return prepare(
        job.workload,
        job.cluster,
        job.plan,
        evidence=Evidence(baseline=known),
        corrections=NO_CORRECTIONS,
    )


def row_covariates(configuration: Configuration) -> Covariates:
    """What corrections may depend on in a row. Its measured speed is no part of it."""
    return _covariates(configuration.unnamed)


@lru_cache(maxsize=16384)
def _prepared(configuration: Configuration) -> PreparedStep:
    job = job_of(configuration)
    return prepare(job.workload, job.cluster, job.plan, corrections=NO_CORRECTIONS)


@lru_cache(maxsize=16384)
def _covariates(configuration: Configuration) -> Covariates:
    job = job_of(configuration)
    assert job.plan.framework is not None
    return covariates_of(job.workload, job.cluster, job.plan.framework, job.program)
