"""Model FLOP utilisation (MFU) explained: reached, attainable, predicted, published."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from paceline.analyse.groups import LaunchGroup
from paceline.analyse.measured_job import known_framework
from paceline.analyse.validation.forecast import Skipped
from paceline.analyse.validation.measurement import Configuration, Measurement
from paceline.analyse.validation.nulls import ideal_throughput
from paceline.analyse.validation.reference import reference_table
from paceline.errors import InputError
from paceline.hardware import Cluster
from paceline.plan.plan import Plan
from paceline.predictor.evidence import Evidence
from paceline.predictor.predict import predict
from paceline.predictor.step_corrections import StepCorrections
from paceline.store import Launch
from paceline.workload import zoo
from paceline.workload.graph import Graph
from paceline.workload.precision import precision
from paceline.workload.workload import Workload

NEAREST = 3


@dataclass(frozen=True)
class PublishedUtilisation:
    """What somebody else reached: the row in words, its MFU, and what differs from this job."""

    words: str
    utilisation: float
    differences: tuple[str, ...]
    source: str


@dataclass(frozen=True)
class Utilisation:
    """MFU of a measured job, as parts of the peak of all its devices.

    ``attainable`` is what the operations of this network reach on one such device alone at this
    batch, ``predicted`` what the whole job should reach. ``published`` are the nearest rows.
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
    """The MFU of launches of one configuration on ``cluster``, one device a process.

    ``evidence`` and ``corrections`` are what is known of the place beside the launches.
    """
    launch = group.first
    kind = "fp32" if launch.precision == "unknown" else launch.precision
    workload = Workload(_graph(launch), launch.batch_per_rank, launch.job.get("sequence"), kind)
    peak = cluster.device.peak(precision(kind).compute)
    flops = float(workload.cost.training_flops) / workload.batch
    achieved = flops * group.throughput.mean / (peak * launch.world_size)
    if achieved > 1.0:
        raise InputError(
            f"{achieved:.0%} of the peak of {cluster.device.name} is impossible",
            "check --device, the batch and the precision of the launches",
        )
    plan = Plan(dp=launch.world_size, framework=known_framework(launch.framework))
    prediction = predict(workload, cluster, plan, evidence=evidence, corrections=corrections)
    predicted = prediction.utilisation or math.nan
    return Utilisation(
        group.words,
        cluster.device.name,
        peak,
        achieved,
        predicted / prediction.efficiency,
        predicted,
        tuple(_nearest(launch, cluster.device.name, kind)),
        () if launch.precision != "unknown" else ("precision is not recorded: fp32 is assumed",),
    )


def _graph(launch: Launch) -> Graph:
    document = launch.job.get("graph")
    if document:
        return Graph.from_json(document)
    if launch.model not in zoo.names():
        raise InputError(
            f"the FLOP of '{launch.model}' are not known",
            "import or run it with --model NAME of the zoo ('paceline models')",
        )
    return zoo.build(launch.model)


def _nearest(launch: Launch, device: str, kind: str) -> Iterator[PublishedUtilisation]:
    """Published rows most like the job: first of its network and device, then of either."""
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
            _words(row),
            row.throughput / ideal,
            tuple(_differences(row.configuration, launch, device, kind)),
            row.source,
        )


def _distance(other: Configuration, launch: Launch, device: str, kind: str) -> tuple[float, ...]:
    """Unlike things first, then how far batch and number of devices lie apart."""
    unlike = (other.device != device) + (precision(other.precision) != precision(kind))
    batch = abs(math.log(other.batch_per_device / launch.batch_per_rank))
    devices = abs(math.log(other.devices / launch.world_size))
    return (float(unlike), batch + devices)


def _words(row: Measurement) -> str:
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
