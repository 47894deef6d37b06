"""Pipeline schedules with separate passes for input and weight gradients.

Only input gradients block other stages; weight gradients fill the bubble (Qi et al. 2023, "Zero
Bubble Pipeline Parallelism", arXiv 2401.10241). Orders do not depend on times.
"""

from collections import Counter
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from paceline.predictor.plan.plan_choices import PipelineSchedule


class Part(IntEnum):
    """What a pass computes."""

    FORWARD = 0
    INPUTS = 1
    """Gradients of the activations, which the previous stage waits for."""
    WEIGHTS = 2


class SplitPass(NamedTuple):
    """A pass of one micro-batch through the chunk at ``place`` of the network.

    ``source`` is the index of the pass of another chunk or part that it waits for; -1 for the
    first one.
    """

    stage: int
    place: int
    part: Part
    micro_batch: int
    source: int


_Step = tuple[Part, int, int]
"""Part, index of the chunk, and micro-batch."""


@lru_cache(maxsize=64)
def split_passes(schedule: PipelineSchedule, pp: int, micro_batches: int) -> tuple[SplitPass, ...]:
    """All passes of all stages in one step, each after the pass that it waits for."""
    order = _v_order if schedule.is_v else _plain_order
    orders = [order(stage, pp, micro_batches) for stage in range(pp)]
    last = pp * schedule.chunks_of_stage - 1
    listed: list[SplitPass] = []
    known: dict[_Step, int] = {}
    done = [0] * pp
    while len(listed) < sum(map(len, orders)):
        for stage, own in enumerate(orders):
            while done[stage] < len(own):
                step = own[done[stage]]
                awaited = _awaited(step, last)
                if awaited is not None and awaited not in known:
                    break
                source = -1 if awaited is None else known[awaited]
                known[step] = len(listed)
                listed.append(SplitPass(stage, step[1], step[0], step[2], source))
                done[stage] += 1
    return tuple(listed)


@lru_cache(maxsize=64)
def peaks_held(schedule: PipelineSchedule, pp: int, micro_batches: int) -> tuple[float, ...]:
    """Micro-batches in flight on each stage at its peak, in units of whole stages.

    A micro-batch counts fully until its weight gradients are computed: an upper bound.
    """
    held, peaks = [0] * pp, [0] * pp
    for work in split_passes(schedule, pp, micro_batches):
        held[work.stage] += {Part.FORWARD: 1, Part.INPUTS: 0, Part.WEIGHTS: -1}[work.part]
        peaks[work.stage] = max(peaks[work.stage], held[work.stage])
    return tuple(peak / schedule.chunks_of_stage for peak in peaks)


def _awaited(step: _Step, last: int) -> _Step | None:
    """The pass of another chunk or part that a pass needs."""
    part, place, number = step
    if part is Part.WEIGHTS:
        return Part.INPUTS, place, number
    if part is Part.INPUTS:
        return (Part.FORWARD, place, number) if place == last else (part, place + 1, number)
    return (part, place - 1, number) if place > 0 else None


def _plain_order(stage: int, pp: int, micro_batches: int) -> list[_Step]:
    """ZB-H1: 1F1B with weight gradients delayed by s micro-batches on stage s.

    Every stage then holds as many micro-batches as the first stage of 1F1B.
    """
    forwards = [(Part.FORWARD, stage, number) for number in range(micro_batches)]
    ahead = min(pp - stage, micro_batches)
    order = forwards[:ahead]
    for number in range(micro_batches):
        order.append((Part.INPUTS, stage, number))
        if number >= stage:
            order.append((Part.WEIGHTS, stage, number - stage))
        order += forwards[ahead + number : ahead + number + 1]
    behind = range(max(0, micro_batches - stage), micro_batches)
    return order + [(Part.WEIGHTS, stage, number) for number in behind]


def _v_order(stage: int, pp: int, micro_batches: int) -> list[_Step]:
    """ZB-V: two chunks per stage, one in each arm of the V.

    Designed for at least 2 pp - 1 micro-batches; with fewer the missing ones are omitted.
    """
    there, back = stage, 2 * pp - 1 - stage
    counted = max(2 * pp - 1, micro_batches)
    done: Counter[tuple[Part, int]] = Counter()
    order: list[_Step] = []

    def add(place: int, *parts: Part) -> None:
        for part in parts:
            order.append((part, place, done[part, place]))
            done[part, place] += 1

    for _ in range(2 * (pp - stage) - 1):
        add(there, Part.FORWARD)
    for _ in range(stage):
        add(back, Part.FORWARD)
        add(there, Part.FORWARD)
    for _ in range(pp - stage):
        add(back, *Part)
    while done[Part.FORWARD, back] < counted:
        if done[Part.FORWARD, there] < counted:
            add(there, Part.FORWARD)
        add(there, Part.INPUTS, Part.WEIGHTS)
        add(back, *Part)
    for _ in range(stage):
        add(there, Part.INPUTS)
        add(back, Part.INPUTS)
    for _ in range(pp - stage):
        add(there, Part.INPUTS, Part.WEIGHTS)
    for place in (back, there):
        while done[Part.WEIGHTS, place] < counted:
            add(place, Part.WEIGHTS)
    return [step for step in order if step[2] < micro_batches]
