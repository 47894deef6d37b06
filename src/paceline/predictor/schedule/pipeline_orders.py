"""Pipeline schedules: the order of passes on each stage.

Split schedules compute gradients of activations and of weights in separate passes: only the former
block other stages, the latter fill the bubble (Qi et al. 2023, "Zero Bubble Pipeline Parallelism",
arXiv 2401.10241). Orders do not depend on times.
"""

from collections import Counter
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from paceline.errors import InputError
from paceline.predictor.plan.plan_choices import PipelineSchedule


class Part(IntEnum):
    """What a pass computes."""

    FORWARD = 0
    BACKWARD = 1
    """All gradients."""
    INPUTS = 2
    """Gradients of the activations, which the previous stage waits for."""
    WEIGHTS = 3


class Pass(NamedTuple):
    """A pass of one micro-batch through the chunk at ``place`` of the network.

    ``source`` is the index of the pass of another chunk or part that it waits for; -1 for the
    first one.
    """

    stage: int
    place: int
    part: Part
    micro_batch: int
    source: int = -1

    @property
    def is_forward(self) -> bool:
        return self.part is Part.FORWARD


@lru_cache(maxsize=64)
def listed_passes(
    schedule: PipelineSchedule, pp: int, micro_batches: int, interleave: int = 1
) -> tuple[Pass, ...]:
    """All passes of all stages in one step, each after the pass that it waits for."""
    orders = [
        iter(stage_order(schedule, stage, pp, micro_batches, interleave)) for stage in range(pp)
    ]
    chunks = schedule.chunks_of_stage if schedule.splits_backward else interleave
    known: dict[tuple[Part, int, int], int] = {}
    listed: list[Pass] = []
    waiting = [next(order, None) for order in orders]
    moved = True
    while moved:
        moved = False
        for stage, order in enumerate(orders):
            work = waiting[stage]
            while work is not None:
                awaited = _awaited(work, pp * chunks - 1)
                if awaited is not None and awaited not in known:
                    break
                known[work.part, work.place, work.micro_batch] = len(listed)
                listed.append(Pass(*work[:4], -1 if awaited is None else known[awaited]))
                work, moved = next(order, None), True
            waiting[stage] = work
    return tuple(listed)


def _awaited(work: Pass, last: int) -> tuple[Part, int, int] | None:
    """The pass of another chunk or part that a pass needs."""
    _, place, part, number, _ = work
    if part is Part.FORWARD:
        return (part, place - 1, number) if place > 0 else None
    if part is Part.WEIGHTS:
        return Part.INPUTS, place, number
    return (Part.FORWARD, place, number) if place == last else (part, place + 1, number)


@lru_cache(maxsize=64)
def peaks_held(schedule: PipelineSchedule, pp: int, micro_batches: int) -> tuple[float, ...]:
    """Micro-batches in flight on each stage of a split schedule at its peak, in whole stages.

    A micro-batch counts fully until its weight gradients are computed: an upper bound.
    """
    held, peaks = [0] * pp, [0] * pp
    for work in listed_passes(schedule, pp, micro_batches):
        held[work.stage] += {Part.FORWARD: 1, Part.INPUTS: 0, Part.WEIGHTS: -1}[work.part]
        peaks[work.stage] = max(peaks[work.stage], held[work.stage])
    return tuple(peak / schedule.chunks_of_stage for peak in peaks)


def stage_order(
    schedule: PipelineSchedule, stage: int, pp: int, micro_batches: int, interleave: int = 1
) -> list[Pass]:
    """All passes of a stage in one step, in order.

    Chunk 0 of a stage is nearest the input. 1F1B runs one forward per later stage, then alternates
    one forward and one backward. Interleaved 1F1B goes through chunks in rounds of ``pp``
    micro-batches (Narayanan et al. 2021), which therefore must fill whole rounds.
    """
    if schedule.splits_backward:
        order = _v_order if schedule.is_v else _plain_order
        return order(stage, pp, micro_batches)
    total = micro_batches * interleave

    def passes(part: Part, first: int, last: int) -> list[Pass]:
        return [_pass(k, part, stage, pp, interleave, micro_batches) for k in range(first, last)]

    forwards, backwards = passes(Part.FORWARD, 0, total), passes(Part.BACKWARD, 0, total)
    if schedule is PipelineSchedule.GPIPE:
        return forwards + backwards
    ahead = pp - stage - 1
    if interleave > 1:
        check_rounds(pp, micro_batches)
        ahead = 2 * ahead + (interleave - 1) * pp
    ahead = min(ahead, total)
    pairs = zip(forwards[ahead:], backwards, strict=False)
    alternating = [work for pair in pairs for work in pair]
    return [*forwards[:ahead], *alternating, *backwards[total - ahead :]]


def check_rounds(pp: int, micro_batches: int) -> None:
    """Reject interleaving whose micro-batches do not fill whole rounds of the pipeline."""
    if micro_batches % pp:
        raise InputError(
            f"interleaving needs a multiple of pp = {pp} micro-batches (got {micro_batches})",
            f"use a multiple of {pp} micro-batches",
        )


def _pass(k: int, part: Part, stage: int, pp: int, interleave: int, micro_batches: int) -> Pass:
    """The k-th forward or backward: rounds of ``pp`` micro-batches, each through all chunks."""
    if interleave == 1:
        return Pass(stage, stage, part, k)
    if micro_batches % pp:
        chunk, micro_batch = divmod(k, micro_batches)
    else:
        round_, inside = divmod(k, pp * interleave)
        chunk, position = divmod(inside, pp)
        micro_batch = round_ * pp + position
    chunk = chunk if part is Part.FORWARD else interleave - 1 - chunk
    return Pass(stage, chunk * pp + stage, part, micro_batch)


def _plain_order(stage: int, pp: int, micro_batches: int) -> list[Pass]:
    """ZB-H1: 1F1B with weight gradients delayed by s micro-batches on stage s.

    Every stage then holds as many micro-batches as the first stage of 1F1B.
    """
    forwards, inputs, weights = (
        [Pass(stage, stage, part, number) for number in range(micro_batches)]
        for part in (Part.FORWARD, Part.INPUTS, Part.WEIGHTS)
    )
    ahead = min(pp - stage, micro_batches)
    order = forwards[:ahead]
    for number in range(micro_batches):
        order.append(inputs[number])
        if number >= stage:
            order.append(weights[number - stage])
        order += forwards[ahead + number : ahead + number + 1]
    return order + weights[max(0, micro_batches - stage) :]


def _v_order(stage: int, pp: int, micro_batches: int) -> list[Pass]:
    """ZB-V: two chunks per stage, one in each arm of the V.

    Designed for at least 2 pp - 1 micro-batches; with fewer the missing ones are omitted.
    """
    there, back = stage, 2 * pp - 1 - stage
    counted = max(2 * pp - 1, micro_batches)
    done: Counter[tuple[Part, int]] = Counter()
    order: list[Pass] = []

    def add(place: int, *parts: Part) -> None:
        for part in parts:
            order.append(Pass(stage, place, part, done[part, place]))
            done[part, place] += 1

    gradients = (Part.INPUTS, Part.WEIGHTS)
    for _ in range(2 * (pp - stage) - 1):
        add(there, Part.FORWARD)
    for _ in range(stage):
        add(back, Part.FORWARD)
        add(there, Part.FORWARD)
    for _ in range(pp - stage):
        add(back, Part.FORWARD, *gradients)
    while done[Part.FORWARD, back] < counted:
        if done[Part.FORWARD, there] < counted:
            add(there, Part.FORWARD)
        add(there, *gradients)
        add(back, Part.FORWARD, *gradients)
    for _ in range(stage):
        add(there, Part.INPUTS)
        add(back, Part.INPUTS)
    for _ in range(pp - stage):
        add(there, *gradients)
    for place in (back, there):
        while done[Part.WEIGHTS, place] < counted:
            add(place, Part.WEIGHTS)
    return [work for work in order if work.micro_batch < micro_batches]
