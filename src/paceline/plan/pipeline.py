"""Pipeline schedules: the order of work on each stage."""

from dataclasses import dataclass

from paceline.errors import InputError
from paceline.plan.plan import PipelineSchedule


@dataclass(frozen=True, slots=True)
class Pass:
    """Forward or backward of one micro-batch through one chunk of a stage."""

    is_forward: bool
    micro_batch: int
    chunk: int


def stage_order(
    schedule: PipelineSchedule, stage: int, pp: int, micro_batches: int, interleave: int = 1
) -> list[Pass]:
    """Everything a stage does in one step, in order; chunk 0 is nearest the input.

    1F1B runs as many forwards as there are stages behind it, then one forward and one backward
    in turn. Interleaved, it goes through chunks in rounds of ``pp`` micro-batches (Narayanan et
    al. 2021), which therefore must fill whole rounds.
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
    """Refuse interleaving whose micro-batches do not fill whole rounds of the pipeline."""
    if micro_batches % pp:
        raise InputError(
            f"interleaving needs micro-batches in rounds of pp {pp}, not {micro_batches}",
            f"take a multiple of {pp} micro-batches",
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
