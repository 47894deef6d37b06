"""Published rows as modelled steps, by the same stages as any prediction."""

from dataclasses import asdict, dataclass, replace
from functools import lru_cache

from paceline.predictor import predict
from paceline.predictor.evidence import Baseline, Evidence
from paceline.predictor.prediction_inputs import ModelledStep
from paceline.predictor.uncertainty.covariates import Covariates, covariates_of
from paceline.predictor.uncertainty.measured_scale import corrected_timeline
from paceline.predictor.uncertainty.step_corrections import NO_CORRECTIONS, StepCorrections
from paceline.validation.published_job import job_of
from paceline.validation.published_row import Configuration, PublishedRow

_WHAT_COMPUTES = (
    *("model", "hidden", "layers", "heads", "kv_heads", "feed_forward", "vocabulary", "n_params"),
    *("device", "precision", "task"),
)
"""Fields of a row that determine the computation time of a device."""


@dataclass(frozen=True, slots=True)
class RowCovariates(Covariates):
    """Covariates of a row, and the groups of rows that are not independent.

    ``program`` is one program of a source on one network and sequence length, ``machine`` one
    machine of a source.
    """

    program: str = ""
    machine: str = ""


def measured_seconds(row: PublishedRow) -> float:
    """Seconds per optimizer step of a row."""
    job = job_of(row.configuration)
    return job.samples * job.units_per_sample / row.throughput


def row_step(configuration: Configuration) -> ModelledStep:
    """The modelled step of a row without measurements and corrections; cached."""
    return _modelled(configuration.unnamed)


def row_seconds(step: ModelledStep, corrections: StepCorrections = NO_CORRECTIONS) -> float:
    """Seconds of the step of a row under corrections."""
    return corrected_timeline(step, corrections, predict.reference_step(step.job)).seconds


def with_evidence(step: ModelledStep, evidence: Evidence) -> ModelledStep:
    """The same step scaled to a measured one; ``evidence`` has no layers and no messages."""
    return replace(step, job=replace(step.job, evidence=evidence))


def baseline_evidence(baseline: PublishedRow, row: Configuration) -> Evidence:
    """The measured baseline of a group, as evidence for another row of it.

    If the model or device of the row is unknown, the baseline is assumed to have the same.
    """
    known = baseline.configuration
    if job_of(row).cold_obstacle:
        known = replace(known, **{name: getattr(row, name) for name in _WHAT_COMPUTES})
    return Evidence(baseline=Baseline(row_step(known), measured_seconds(baseline)))


def row_covariates(configuration: Configuration) -> RowCovariates:
    """The covariates of a row, which do not include its measured speed."""
    return _covariates(configuration.unnamed)


@lru_cache(maxsize=16384)
def _modelled(configuration: Configuration) -> ModelledStep:
    row = job_of(configuration)
    return predict.model_step(
        predict.prepare(row.workload, row.cluster, row.plan, corrections=NO_CORRECTIONS)
    )


@lru_cache(maxsize=16384)
def _covariates(configuration: Configuration) -> RowCovariates:
    job, source, method = job_of(configuration), configuration.family, configuration.method
    framework, network = job.plan.framework, job.workload.graph.name
    assert framework is not None
    known = covariates_of(job.workload, job.cluster, framework, job.program)
    sequence = job.workload.sequence or ""
    machine = method if method.startswith("system:") else job.cluster.device.name
    return RowCovariates(
        **asdict(known),
        program=f"{source}/{framework}/{configuration.task}/{network}/{sequence}",
        machine=f"{source}/{machine}",
    )
