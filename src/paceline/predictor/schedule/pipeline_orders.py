"""Pipeline schedules: the order of work on each stage."""

from functools import lru_cache
from typing import NamedTuple

from paceline.errors import InputError
from paceline.predictor.plan.plan_choices import PipelineSchedule


class Pass(NamedTuple):
    """Forward or backward of one micro-batch through one chunk of a stage."""

    is_forward: bool
    micro_batch: int
    chunk: int


class PlacedPass(NamedTuple):
    """A scheduled pass: ``place`` is the index of its chunk in the network.

    ``source`` is the index of the pass that it waits for, -1 for the first one.
    """

    stage: int
    place: int
    is_forward: bool
    micro_batch: int
    source: int


@lru_cache(maxsize=64)
def listed_passes(
    schedule: PipelineSchedule, pp: int, micro_batches: int, interleave: int = 1
) -> tuple[PlacedPass, ...]:
    """All passes of all stages in one step, each after the pass that it waits for."""
    orders = [
        iter(stage_order(schedule, stage, pp, micro_batches, interleave)) for stage in range(pp)
    ]
    last = pp * interleave - 1
    sources = {(True, number, 0): -1 for number in range(micro_batches)}
    listed: list[PlacedPass] = []
    waiting = [next(order, None) for order in orders]
    moved = True
    while moved:
        moved = False
        for stage, order in enumerate(orders):
            work = waiting[stage]
            while work is not None:
                place, forward = work.chunk * pp + stage, work.is_forward
                source = sources.pop((forward, work.micro_batch, place), None)
                if source is None:
                    break
                target = (forward, place + 1 if forward else place - 1)
                if forward and place == last:
                    target = (False, place)
                sources[target[0], work.micro_batch, target[1]] = len(listed)
                listed.append(PlacedPass(stage, place, forward, work.micro_batch, source))
                work, moved = next(order, None), True
            waiting[stage] = work
    return tuple(listed)


def stage_order(
    schedule: PipelineSchedule, stage: int, pp: int, micro_batches: int, interleave: int = 1
) -> list[Pass]:
    """All passes of a stage in one step of one of `plan_choices.WHOLE_BACKWARD`, in order.

    Chunk 0 is nearest the input. 1F1B runs one forward per later stage, then alternates one
    forward and one backward. Interleaved 1F1B goes through chunks in rounds of ``pp`` micro-batches
    (Narayanan et al. 2021), which therefore must fill whole rounds.
    """
    total = micro_batches * interleave
    if schedule is PipelineSchedule.GPIPE:
        forwards = [_pass(k, True, pp, interleave, micro_batches) for k in range(total)]
        return forwards + [_pass(k, False, pp, interleave, micro_batches) for k in range(total)]
    if interleave > 1:
        check_rounds(pp, micro_batches)
        ahead = 2 * (pp - stage - 1) + (interleave - 1) * pp
    else:
        ahead = pp - stage - 1
    warm_up = min(ahead, total)
    order = [_pass(k, True, pp, interleave, micro_batches) for k in range(warm_up)]
    for k in range(total - warm_up):
        order.append(_pass(k + warm_up, True, pp, interleave, micro_batches))
        order.append(_pass(k, False, pp, interleave, micro_batches))
    order += [_pass(k, False, pp, interleave, micro_batches) for k in range(total - warm_up, total)]
    return order


def check_rounds(pp: int, micro_batches: int) -> None:
    """Reject interleaving whose micro-batches do not fill whole rounds of the pipeline."""
    if micro_batches % pp:
        raise InputError(
            f"interleaving needs a multiple of pp = {pp} micro-batches (got {micro_batches})",
            f"use a multiple of {pp} micro-batches",
        )


def _pass(k: int, is_forward: bool, pp: int, interleave: int, micro_batches: int) -> Pass:
    """The k-th forward or backward: rounds of ``pp`` micro-batches, each through all chunks."""
    if interleave == 1:
        return Pass(is_forward, k, 0)
    if micro_batches % pp:
        chunk, micro_batch = divmod(k, micro_batches)
    else:
        round_, inside = divmod(k, pp * interleave)
        chunk, position = divmod(inside, pp)
        micro_batch = round_ * pp + position
    return Pass(is_forward, micro_batch, chunk if is_forward else interleave - 1 - chunk)
