"""What a machine's own launches say of one job: its step alone, beside others, layer by layer."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paceline.analyse.statistics import Estimate, estimate, mean_step_seconds, step_seconds
from paceline.errors import InputError
from paceline.predictor.data_parallel import LayerTime
from paceline.step import Phase, breakdown
from paceline.store import Launch, Status


@dataclass(frozen=True)
class Colocated:
    """Ranks that trained side by side without talking.

    ``step`` is the mean step of a rank, ``slowest`` that of the slowest rank at each step, both
    in seconds over launches: their difference is what waiting for each other will cost.
    """

    ranks: int
    step: Estimate
    slowest: Estimate


@dataclass(frozen=True)
class Calibration:
    """One job on one process of this machine, and what neighbours do to it.

    ``layers`` are scaled so that they, the input and the update sum to the plain step: hooks cost
    time, so an instrumented launch gives the shares and the plain launches the total.
    ``step_variation`` is the coefficient of variation of steps within a launch.
    """

    model: str
    batch_per_rank: int
    step: Estimate
    layers: tuple[LayerTime, ...]
    input_seconds: float
    update_seconds: float
    step_variation: float
    colocated: Mapping[int, Colocated]


def calibrate(launches: Sequence[Launch]) -> Calibration:
    """Calibrate one job from its launches; synchronised runs of several ranks are not used."""
    finished = [launch for launch in launches if launch.status is Status.FINISHED]
    alone = [launch for launch in finished if launch.world_size == 1]
    plain = [launch for launch in alone if launch.instrument == "none"]
    layered = [launch for launch in alone if launch.instrument == "layers"]
    if not plain or not layered:
        missing = "plain" if not plain else "layer-timed"
        raise InputError(
            f"calibration needs a finished {missing} launch on one process",
            "'paceline measure -j 1x1 --instrument none,layers' makes both kinds",
        )
    step = estimate([mean_step_seconds(launch) for launch in plain])
    input_seconds, update_seconds = _input_and_update(layered)
    return Calibration(
        model=plain[0].model,
        batch_per_rank=plain[0].batch_per_rank,
        step=step,
        layers=_scaled_layers(layered[0], step.mean - input_seconds - update_seconds),
        input_seconds=input_seconds,
        update_seconds=update_seconds,
        step_variation=statistics.fmean(_variation(launch) for launch in plain),
        colocated=_colocated(finished),
    )


def _input_and_update(launches: Sequence[Launch]) -> tuple[float, float]:
    exposed = [
        breakdown(launch.outcome.timeline).exposed
        for launch in launches
        if launch.outcome.timeline is not None
    ]
    return (
        statistics.fmean(parts.get(Phase.INPUT, 0.0) for parts in exposed),
        statistics.fmean(parts.get(Phase.UPDATE, 0.0) for parts in exposed),
    )


def _scaled_layers(launch: Launch, compute_seconds: float) -> tuple[LayerTime, ...]:
    layers = launch.outcome.layers
    total = math.fsum(layer.forward_seconds + layer.backward_seconds for layer in layers)
    scale = compute_seconds / total
    return tuple(
        LayerTime(
            layer.name,
            layer.forward_seconds * scale,
            layer.backward_seconds * scale,
            layer.gradient_bytes,
        )
        for layer in layers
    )


def _variation(launch: Launch) -> float:
    steps = step_seconds(launch)
    if len(steps) < 2:
        return 0.0
    return statistics.stdev(steps) / statistics.fmean(steps)


def _colocated(finished: Sequence[Launch]) -> dict[int, Colocated]:
    by_ranks: dict[int, list[Launch]] = {}
    for launch in finished:
        if launch.world_size > 1 and not launch.synchronised and launch.instrument == "none":
            by_ranks.setdefault(launch.world_size, []).append(launch)
    return {
        ranks: Colocated(
            ranks,
            estimate([_mean_rank_step(launch) for launch in group]),
            estimate([mean_step_seconds(launch) for launch in group]),
        )
        for ranks, group in by_ranks.items()
    }


def _mean_rank_step(launch: Launch) -> float:
    return statistics.fmean(
        seconds
        for rank in launch.outcome.ranks
        for seconds in rank.wall_seconds[launch.warmup_steps :]
    )
