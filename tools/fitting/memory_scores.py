"""Accuracy of predicted memory: errors of measured peaks, and verdicts on failed jobs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from paceline.errors import PacelineError
from paceline.predictor.memory.fit_probability import fits_in
from paceline.predictor.memory.memory_parts import Memory
from paceline.predictor.memory.peak_memory import stage_memories
from paceline.predictor.prediction_inputs import ModelledStep
from paceline.predictor.uncertainty.mixed_effects import Uncertain
from paceline.validation.published_row import Configuration, PublishedRow
from paceline.validation.row_step_model import row_step


@dataclass(frozen=True)
class MemoryScore:
    """Errors of ``peaks`` measured peaks, and verdicts on jobs that ran and that failed.

    ``mean_error`` is of predicted over measured bytes, ``bias`` the mean of its logarithm, both
    with tensor parallelism inside a node; ``mean_error_anywhere`` is of all peaks. A plan is
    predicted to fail if it is rejected or its probability to fit is below one half; not every
    failed job was out of memory. ``ran_predicted`` and ``failed_predicted`` are the shares of jobs
    whose outcome was predicted.
    """

    peaks: int
    mean_error: float
    mean_error_anywhere: float
    bias: float
    ran: int
    ran_predicted: float
    failed: int
    failed_predicted: float


def memory_score(layouts: Sequence[PublishedRow]) -> MemoryScore:
    """Scores of tried layouts."""
    ratios: list[float] = []
    beyond: list[float] = []
    verdicts = {True: [0, 0], False: [0, 0]}
    for row in layouts:
        memories = predicted_memories(row.configuration)
        counts = verdicts[not row.failed]
        counts[0] += 1
        counts[1] += _predicted_to_run(row.configuration, memories)
        if memories and row.memory_bytes and not row.failed:
            found = ratios if is_inside_a_node(row.configuration) else beyond
            found.append(float(memories[0].total_bytes) / row.memory_bytes)
    (ran, ran_to), (failed, failed_to) = verdicts[True], verdicts[False]
    return MemoryScore(
        len(ratios),
        float(np.mean(np.abs(np.array(ratios) - 1.0))),
        float(np.mean(np.abs(np.array([*ratios, *beyond]) - 1.0))),
        float(np.mean(np.log(ratios))),
        ran,
        ran_to / ran,
        failed,
        1.0 - failed_to / failed,
    )


def predicted_memories(configuration: Configuration) -> list[Memory]:
    """Memory per device of each pipeline stage; none where the plan is refused."""
    try:
        return _stages(row_step(configuration))
    except PacelineError:
        return []


def _stages(step: ModelledStep) -> list[Memory]:
    return list(stage_memories(step.parts, step.communication.stage_counts))


def memory_error(layouts: Sequence[PublishedRow]) -> Uncertain:
    """Mean and variance of log(measured / predicted peak), tensor parallelism inside a node.

    Peaks are bytes reserved by the allocator of a device of the first pipeline stage: even where
    the last stage needs more, measured peaks follow the first. Layouts with tensor parallelism
    across nodes are not used in practice, and the spread of their peaks is three times as large.
    """
    errors = [-math.log(peak.ratio) for peak in measured_peaks(layouts) if peak.is_inside_a_node]
    return Uncertain(float(np.mean(errors)), float(np.var(errors)))


@dataclass(frozen=True)
class Peak:
    """Measured memory of the first stage of a layout of ``model``, and its plan."""

    model: str
    step: ModelledStep
    measured_bytes: float

    @property
    def ratio(self) -> float:
        """Predicted over measured bytes."""
        return float(_stages(self.step)[0].total_bytes) / self.measured_bytes

    @property
    def is_inside_a_node(self) -> bool:
        """Whether the tensor-parallel group is inside one node."""
        return self.step.parts.plan.tp <= self.step.parts.cluster.devices_per_node


def measured_peaks(layouts: Sequence[PublishedRow]) -> list[Peak]:
    """Peaks of valid layouts that ran."""
    peaks = []
    for row in layouts:
        if row.failed or row.memory_bytes is None:
            continue
        if predicted_memories(row.configuration):
            step = row_step(row.configuration)
            peaks.append(Peak(row.configuration.model, step, row.memory_bytes))
    return peaks


def is_inside_a_node(configuration: Configuration) -> bool:
    """Whether the tensor-parallel group is inside one node."""
    return (configuration.tp or 1) <= configuration.devices_per_node


def _predicted_to_run(configuration: Configuration, memories: Sequence[Memory]) -> bool:
    if not memories:
        return False
    fullest = max(float(memory.total_bytes) for memory in memories)
    chance = fits_in(fullest, row_step(configuration).job.cluster.device.memory_bytes)
    return chance is None or chance >= 0.5
