"""Model FLOP utilisation (MFU): achieved, attainable, predicted, published."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from paceline.analysis.configurations import LaunchGroup
from paceline.calibration.measured_job import known_framework
from paceline.errors import InputError
from paceline.hardware import Cluster
from paceline.predictor.evidence import Evidence
from paceline.predictor.kernels.layer_times import executed_flop_share
from paceline.predictor.plan.plan import Plan
from paceline.predictor.predict import predict
from paceline.predictor.uncertainty.step_corrections import StepCorrections
from paceline.store import Launch
from paceline.validation.forecast import Skipped
from paceline.validation.null_models import ideal_throughput
from paceline.validation.published_row import Configuration, PublishedRow
from paceline.validation.reference_data import reference_table
from paceline.validation.row_step_model import row_step
from paceline.workload import zoo
from paceline.workload.graph import Graph
from paceline.workload.precision import precision
from paceline.workload.workload import Workload

NEAREST = 3


@dataclass(frozen=True)
class PublishedUtilisation:
    """A published row: its description, MFU and differences from this job."""

    description: str
    utilisation: float
    differences: tuple[str, ...]
    source: str


@dataclass(frozen=True)
class Utilisation:
    """MFU of a measured job, as shares of the peak of all its devices.

    Counts executed FLOP: Winograd convolutions execute fewer than the model has.

    ``attainable`` is the MFU of the network's operations on one such device at this batch,
    ``predicted`` that of the whole job. ``published`` are the nearest rows.
    """

    job: str
    device: str
    peak_flops: float
    achieved: float
    attainable: float
    predicted: float
    published: tuple[PublishedUtilisation, ...]
    notes: tuple[str, ...]


def explain_utilisation(
    group: LaunchGroup,
    cluster: Cluster,
    evidence: Evidence | None = None,
    corrections: StepCorrections | None = None,
) -> Utilisation:
    """The MFU of launches of one configuration on ``cluster``, one device per process."""
    launch = group.first
    kind = "fp32" if launch.precision == "unknown" else launch.precision
    workload = Workload(_graph(launch), launch.batch_per_rank, launch.job.get("sequence"), kind)
    peak = cluster.device.peak(precision(kind).compute)
    flops = float(workload.cost.training_flops) / workload.batch
    plan = Plan(dp=launch.world_size, framework=known_framework(launch.framework))
    prediction = predict(workload, cluster, plan, evidence=evidence, corrections=corrections)
    executed = flops * prediction.executed_share
    achieved = executed * group.throughput.mean / (peak * launch.world_size)
    if achieved > 1.0:
        raise InputError(
            f"MFU above 100 %: the launches reach {achieved:.0%} of the peak of "
            f"{cluster.device.name}",
            "check --device, the batch and the precision of the launches",
        )
    predicted = prediction.utilisation or math.nan
    return Utilisation(
        group.description,
        cluster.device.name,
        peak,
        achieved,
        predicted / prediction.efficiency,
        predicted,
        tuple(_nearest(launch, cluster.device.name, kind)),
        ()
        if launch.precision != "unknown"
        else ("The precision is not recorded; fp32 is assumed.",),
    )


def _graph(launch: Launch) -> Graph:
    document = launch.job.get("graph")
    if document:
        return Graph.from_json(document)
    if launch.model not in zoo.names():
        raise InputError(
            f"unknown FLOP of '{launch.model}'",
            "import or run it with --model NAME of the zoo (see 'paceline catalog models')",
        )
    return zoo.build(launch.model)


def _nearest(launch: Launch, device: str, kind: str) -> Iterator[PublishedUtilisation]:
    """The published rows of this network that are nearest to the job."""
    able = [
        (row, ideal)
        for row in reference_table().measurements
        if not row.failed and launch.model == row.configuration.model
        for ideal in [ideal_throughput(row.configuration)]
        if not isinstance(ideal, Skipped)
    ]
    able.sort(key=lambda pair: _distance(pair[0].configuration, launch, device, kind))
    for row, ideal in able[:NEAREST]:
        yield PublishedUtilisation(
            _describe_row(row),
            row.throughput / ideal * executed_flop_share(row_step(row.configuration).parts),
            tuple(_differences(row.configuration, launch, device, kind)),
            row.source,
        )


def _distance(other: Configuration, launch: Launch, device: str, kind: str) -> tuple[float, ...]:
    """Differences in device and precision first, then the distance in batch and devices."""
    unlike = (other.device != device) + (precision(other.precision) != precision(kind))
    batch = abs(math.log(other.batch_per_device / launch.batch_per_rank))
    devices = abs(math.log(other.devices / launch.world_size))
    return (float(unlike), batch + devices)


def _describe_row(row: PublishedRow) -> str:
    one = row.configuration
    return f"{one.model} on {one.devices} {one.device}, {one.framework}, {one.precision}"


def _differences(other: Configuration, launch: Launch, device: str, kind: str) -> Iterator[str]:
    for name, theirs, own in (
        ("device", other.device, device),
        ("devices", other.devices, launch.world_size),
        ("framework", other.framework, launch.framework),
        ("precision", other.precision, kind),
        ("batch per device", round(other.batch_per_device), launch.batch_per_rank),
    ):
        if theirs != own:
            yield f"{name} {theirs} (here {own})"
