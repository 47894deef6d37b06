"""How well predicted memory meets measured peaks, and whether jobs that failed were told to."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from paceline.analyse.validation.measurement import Configuration, Measurement
from paceline.analyse.validation.rows import row_replica
from paceline.errors import PacelineError
from paceline.plan.memory import Memory
from paceline.predictor.corrections.hierarchy import Uncertain
from paceline.predictor.memory_fit import fits_in
from paceline.predictor.plan_memory import stage_memories
from paceline.predictor.predict import prepared_on
from paceline.predictor.prepared import PreparedStep
from paceline.predictor.step_corrections import NO_CORRECTIONS


@dataclass(frozen=True)
class MemoryScore:
    """Errors of ``peaks`` measured peaks, and verdicts on jobs that ran and that failed.

    ``mean_error`` is of predicted over measured bytes, ``bias`` the mean of its logarithm. A plan
    is said not to run where it is refused or more likely than not does not fit; not every job
    that failed was out of memory.
    """

    peaks: int
    mean_error: float
    bias: float
    ran: int
    ran_said_to: float
    failed: int
    failed_said_not_to: float


def memory_score(layouts: Sequence[Measurement]) -> MemoryScore:
    """Scores of layouts that were tried, measured peaks for tensor parallel inside a node."""
    ratios, said_to = [], {True: [0, 0], False: [0, 0]}
    for row in layouts:
        memories = predicted_memories(row.configuration)
        counts = said_to[not row.failed]
        counts[0] += 1
        counts[1] += _said_to_run(row.configuration, memories)
        if memories and row.memory_bytes and is_inside_a_node(row.configuration):
            ratios.append(float(memories[0].total_bytes) / row.memory_bytes)
    (ran, ran_to), (failed, failed_to) = said_to[True], said_to[False]
    return MemoryScore(
        len(ratios),
        float(np.mean(np.abs(np.array(ratios) - 1.0))),
        float(np.mean(np.log(ratios))),
        ran,
        ran_to / ran,
        failed,
        1.0 - failed_to / failed,
    )


def predicted_memories(configuration: Configuration) -> list[Memory]:
    """Memory of a device of each pipeline stage; none where the plan is refused."""
    try:
        return _stages(_prepared(configuration))
    except PacelineError:
        return []


def _prepared(configuration: Configuration) -> PreparedStep:
    return prepared_on(row_replica(configuration), corrections=NO_CORRECTIONS)


def _stages(step: PreparedStep) -> list[Memory]:
    return stage_memories(step.replica, step.chunks, step.synchronisation)


def memory_error(layouts: Sequence[Measurement]) -> Uncertain:
    """Mean and variance of log(measured / predicted peak), tensor parallel inside a node.

    The peaks are what the allocator of a device of the first pipeline stage had reserved: where
    the last stage needs more, measured peaks follow the first. Layouts whose tensor-parallel
    devices reach across nodes are nobody's choice, and their peaks scatter three times as much.
    """
    errors = [-math.log(peak.ratio) for peak in measured_peaks(layouts)]
    return Uncertain(float(np.mean(errors)), float(np.var(errors)))


@dataclass(frozen=True)
class Peak:
    """What a layout of ``model`` was measured to take on its first stage, and its plan."""

    model: str
    step: PreparedStep
    measured_bytes: float

    @property
    def ratio(self) -> float:
        """Predicted over measured bytes."""
        return float(_stages(self.step)[0].total_bytes) / self.measured_bytes


def measured_peaks(layouts: Sequence[Measurement]) -> list[Peak]:
    """Peaks of layouts that ran with tensor parallel inside a node and are not refused."""
    peaks = []
    for row in layouts:
        if row.failed or row.memory_bytes is None or not is_inside_a_node(row.configuration):
            continue
        if predicted_memories(row.configuration):
            step = _prepared(row.configuration)
            peaks.append(Peak(row.configuration.model, step, row.memory_bytes))
    return peaks


def is_inside_a_node(configuration: Configuration) -> bool:
    """Whether tensor-parallel devices are in one node."""
    return (configuration.tp or 1) <= configuration.devices_per_node


def _said_to_run(configuration: Configuration, memories: Sequence[Memory]) -> bool:
    if not memories:
        return False
    fullest = max(float(memory.total_bytes) for memory in memories)
    chance = fits_in(fullest, row_replica(configuration).cluster.device.memory_bytes)
    return chance is None or chance >= 0.5
