"""Pipeline schedules as the papers draw them, and bubbles by their formulas.

GPipe and 1F1B, plain and interleaved: Narayanan et al. 2021 (arXiv 2104.04473), figures 3 and 4,
with 4 devices and 8 micro-batches. ZB-H1 and ZB-V: Qi et al. (arXiv 2401.10241). Passes are written
F1, B1, W1 (forward, backward or gradient of inputs, gradient of weights) with micro-batches from 1;
an apostrophe marks the second chunk.
"""

import numpy as np
import pytest

from paceline.predictor.plan.plan_choices import PipelineSchedule
from paceline.predictor.schedule.pipeline_closed_form import EqualBlocks, TimedChunk, uneven_seconds
from paceline.predictor.schedule.pipeline_orders import (
    Part,
    check_rounds,
    listed_passes,
    peaks_held,
    stage_order,
)

GPIPE, ONE_F_ONE_B = PipelineSchedule.GPIPE, PipelineSchedule.ONE_F_ONE_B
ZB_H1, ZB_V = PipelineSchedule.ZERO_BUBBLE, PipelineSchedule.ZB_V
SHAPES = [(1, 1), (1, 4), (2, 1), (2, 2), (4, 3), (4, 8), (8, 8), (8, 20)]


def drawn(schedule, stage, pp, micro_batches, interleave=1):
    """The passes of a stage as the paper writes them."""
    return " ".join(
        f"{'F' if each.is_forward else 'B'}{each.micro_batch + 1}{chr(39) * (each.place // pp)}"
        for each in stage_order(schedule, stage, pp, micro_batches, interleave)
    )


def drawn_split(schedule, stage, pp, micro_batches):
    letters = {Part.FORWARD: "F", Part.INPUTS: "B", Part.WEIGHTS: "W"}
    return " ".join(
        f"{letters[each.part]}{each.micro_batch + 1}{chr(39) if each.place >= pp else ''}"
        for each in listed_passes(schedule, pp, micro_batches)
        if each.stage == stage
    )


def test_gpipe():
    every = "F1 F2 F3 F4 B1 B2 B3 B4"
    assert [drawn(GPIPE, stage, 4, 4) for stage in range(4)] == [every] * 4


def test_one_f_one_b():
    assert [drawn(ONE_F_ONE_B, stage, 4, 8) for stage in range(4)] == [
        "F1 F2 F3 F4 B1 F5 B2 F6 B3 F7 B4 F8 B5 B6 B7 B8",
        "F1 F2 F3 B1 F4 B2 F5 B3 F6 B4 F7 B5 F8 B6 B7 B8",
        "F1 F2 B1 F3 B2 F4 B3 F5 B4 F6 B5 F7 B6 F8 B7 B8",
        "F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7 F8 B8",
    ]


def test_one_f_one_b_with_fewer_micro_batches_than_stages():
    assert drawn(ONE_F_ONE_B, 0, 4, 2) == "F1 F2 B1 B2"
    assert drawn(ONE_F_ONE_B, 2, 4, 2) == "F1 F2 B1 B2"
    assert drawn(ONE_F_ONE_B, 3, 4, 2) == "F1 B1 F2 B2"
    assert drawn(ONE_F_ONE_B, 0, 4, 1) == "F1 B1"


def test_interleaved():
    first = (
        "F1 F2 F3 F4 F1' F2' F3' F4' F5 F6 F7 B1' F8 B2' F5' B3' F6' B4' F7' B1 F8' B2 "
        "B3 B4 B5' B6' B7' B8' B5 B6 B7 B8"
    )
    last = (
        "F1 F2 F3 F4 F1' B1' F2' B2' F3' B3' F4' B4' F5 B1 F6 B2 F7 B3 F8 B4 "
        "F5' B5' F6' B6' F7' B7' F8' B8' B5 B6 B7 B8"
    )
    assert drawn(ONE_F_ONE_B, 0, 4, 8, 2) == first
    assert drawn(ONE_F_ONE_B, 3, 4, 8, 2) == last


def test_gpipe_of_two_chunks_without_whole_rounds():
    assert drawn(GPIPE, 0, 2, 3, 2) == "F1 F2 F3 F1' F2' F3' B1' B2' B3' B1 B2 B3"


def test_zero_bubble_h1():
    assert [drawn_split(ZB_H1, stage, 4, 8) for stage in (0, 1, 3)] == [
        "F1 F2 F3 F4 B1 W1 F5 B2 W2 F6 B3 W3 F7 B4 W4 F8 B5 W5 B6 W6 B7 W7 B8 W8",
        "F1 F2 F3 B1 F4 B2 W1 F5 B3 W2 F6 B4 W3 F7 B5 W4 F8 B6 W5 B7 W6 B8 W7 W8",
        "F1 B1 F2 B2 F3 B3 F4 B4 W1 F5 B5 W2 F6 B6 W3 F7 B7 W4 F8 B8 W5 W6 W7 W8",
    ]


def test_zero_bubble_v_of_two_stages():
    """2 stages, 3 micro-batches: stage 1 holds chunks 0 and 3, stage 2 chunks 1 and 2."""
    assert drawn_split(ZB_V, 0, 2, 3) == (
        "F1 F2 F3 F1' B1' W1' F2' B2' W2' B1 W1 F3' B3' W3' B2 W2 B3 W3"
    )
    assert drawn_split(ZB_V, 1, 2, 3) == (
        "F1 F1' F2 F2' B1' W1' F3 B1 W1 F3' B2' W2' B2 B3' B3 W2 W3' W3"
    )


def start_times(passes, seconds, hop=0.0):
    """Ends of passes, each after its source and the previous pass of its stage."""
    free, ends = {}, []
    for each in passes:
        moved = hop if each.source >= 0 and passes[each.source].stage != each.stage else 0.0
        ready = ends[each.source] + moved if each.source >= 0 else 0.0
        end = max(ready, free.get(each.stage, 0.0)) + seconds(each)
        free[each.stage] = end
        ends.append(end)
    return free


@pytest.mark.parametrize("schedule", [GPIPE, ONE_F_ONE_B])
@pytest.mark.parametrize(("pp", "micro_batches"), SHAPES)
def test_passes_wait_for_their_neighbours(schedule, pp, micro_batches):
    passes = listed_passes(schedule, pp, micro_batches)
    assert len(passes) == 2 * pp * micro_batches
    for index, each in enumerate(passes):
        assert each.stage == each.place
        if each.is_forward and each.place == 0:
            assert each.source == -1
            continue
        assert 0 <= each.source < index
        source = passes[each.source]
        assert source.micro_batch == each.micro_batch
        if each.is_forward:
            assert (source.is_forward, source.place) == (True, each.place - 1)
        elif each.place == pp - 1:
            assert (source.is_forward, source.place) == (True, each.place)
        else:
            assert (source.is_forward, source.place) == (False, each.place + 1)


@pytest.mark.parametrize("schedule", [ZB_H1, ZB_V, PipelineSchedule.DUALPIPE])
@pytest.mark.parametrize(("pp", "micro_batches"), SHAPES[2:])
def test_split_passes_wait_for_their_neighbours(schedule, pp, micro_batches):
    passes = listed_passes(schedule, pp, micro_batches)
    last = pp * schedule.chunks_of_stage - 1
    for index, each in enumerate(passes):
        assert each.stage == min(each.place, 2 * pp - 1 - each.place)
        if each.part is Part.FORWARD and each.place == 0:
            assert each.source == -1
            continue
        assert 0 <= each.source < index
        source = passes[each.source]
        assert source.micro_batch == each.micro_batch
        expected = {
            Part.FORWARD: (Part.FORWARD, each.place - 1),
            Part.INPUTS: (Part.INPUTS, each.place + 1),
            Part.WEIGHTS: (Part.INPUTS, each.place),
        }[each.part]
        if each.part is Part.INPUTS and each.place == last:
            expected = (Part.FORWARD, last)
        assert (source.part, source.place) == expected


@pytest.mark.parametrize("schedule", [GPIPE, ONE_F_ONE_B])
@pytest.mark.parametrize(("pp", "micro_batches"), SHAPES)
def test_bubble_of_gpipe_and_one_f_one_b(schedule, pp, micro_batches):
    """(p - 1) (t_f + t_b) idle in both, section 2.2.1."""
    passes = listed_passes(schedule, pp, micro_batches)
    ends = start_times(passes, lambda each: 1.0 if each.is_forward else 2.0)
    assert max(ends.values()) == pytest.approx(3.0 * (micro_batches + pp - 1))


@pytest.mark.parametrize(
    ("pp", "micro_batches", "chunks"), [(2, 2, 2), (2, 4, 3), (4, 8, 2), (4, 4, 3), (8, 16, 4)]
)
def test_bubble_of_interleaving(pp, micro_batches, chunks):
    """(p - 1) (t_f + t_b) / v, section 2.2.2."""
    passes = listed_passes(ONE_F_ONE_B, pp, micro_batches, chunks)
    ends = start_times(passes, lambda each: (1.0 if each.is_forward else 2.0) / chunks)
    assert max(ends.values()) == pytest.approx(3.0 * (micro_batches + (pp - 1) / chunks))


@pytest.mark.parametrize(("pp", "micro_batches"), [(2, 2), (2, 5), (4, 8), (8, 16)])
def test_bubble_and_memory_of_zero_bubble_h1(pp, micro_batches):
    """(p - 1) (T_F + T_B - T_W) idle; p micro-batches held."""
    seconds = {Part.FORWARD: 1.0, Part.INPUTS: 1.25, Part.WEIGHTS: 0.75}
    ends = start_times(listed_passes(ZB_H1, pp, micro_batches), lambda each: seconds[each.part])
    assert max(ends.values()) == pytest.approx(3.0 * micro_batches + (pp - 1) * 1.5)
    held = peaks_held(ZB_H1, pp, micro_batches)
    assert held == (min(pp, micro_batches),) * pp


@pytest.mark.parametrize(("pp", "micro_batches"), [(2, 4), (4, 8), (8, 16)])
def test_bubble_and_memory_of_zero_bubble_v(pp, micro_batches):
    """Equal passes: stages start one after another by half a forward and end the same way."""
    passes = listed_passes(ZB_V, pp, micro_batches)
    ends = start_times(passes, lambda each: 0.5)
    assert max(ends.values()) == pytest.approx(3.0 * micro_batches + 0.5 * (pp - 1))
    assert max(peaks_held(ZB_V, pp, micro_batches)) == pp
    assert passes == listed_passes(PipelineSchedule.DUALPIPE, pp, micro_batches)


def test_peaks_of_few_micro_batches():
    assert peaks_held(ZB_H1, 4, 2) == (2, 2, 2, 2)
    assert peaks_held(ZB_V, 4, 1) == (1, 1, 1, 1)


def test_interleaving_checks_rounds():
    check_rounds(4, 8)
    with pytest.raises(Exception, match="multiple of pp = 4"):
        check_rounds(4, 7)


# Closed forms.


def one(value):
    return np.array([float(value)])


def blocks(first, middle, last, hop, pp, micro_batches, interleave=1):
    chunks = [TimedChunk(one(f), one(b)) for f, b in (first, middle, last)]
    return EqualBlocks(*chunks, one(hop), one(pp), one(micro_batches), one(interleave))


@pytest.mark.parametrize(
    ("pp", "micro_batches", "hop", "gpipe"),
    [
        (2, 1, 0.0, 6.0),
        (4, 8, 0.0, 33.0),
        (4, 8, 0.5, 33.0 + 6 * 0.5),  # the round trip has 6 hops, hidden behind passes
        (4, 8, 3.0, 12.0 + 6 * 3 + 7 * 6),  # a message every 3 s paces both directions
    ],
)
def test_gpipe_closed_form(pp, micro_batches, hop, gpipe):
    own = blocks((1, 2), (1, 2), (1, 2), hop, pp, micro_batches)
    assert own.way[0] == pytest.approx(3 * pp + 2 * (pp - 1) * hop)
    assert own.gpipe_seconds()[0] == pytest.approx(gpipe)


def test_gpipe_is_paced_by_its_slowest_stage():
    own = blocks((1, 2), (1.5, 3), (2, 2.5), 0.0, 4, 5)
    assert own.gpipe_seconds()[0] == pytest.approx(3 + 9 + 4.5 + 4 * (2 + 3))
    # Without middle stages, their times do not count.
    two = blocks((1, 2), (9, 9), (2, 2.5), 0.0, 2, 5)
    assert two.gpipe_seconds()[0] == pytest.approx(3 + 4.5 + 4 * (2 + 2.5))


@pytest.mark.parametrize(("pp", "micro_batches", "chunks"), [(4, 8, 1), (4, 8, 2), (8, 64, 4)])
def test_closed_form_of_equal_stages(pp, micro_batches, chunks):
    f, b = 1 / chunks, 2 / chunks
    own = blocks((f, b), (f, b), (f, b), 0.0, pp, micro_batches, chunks)
    assert own.seconds()[0] == pytest.approx(3.0 * (micro_batches + (pp - 1) / chunks))
    estimate, _ = own.estimate()
    assert estimate[0] == pytest.approx(3.0 * (micro_batches + (pp - 1) / chunks))


@pytest.mark.parametrize(("hop", "unsure"), [(0.9, False), (1.2, True), (2.5, True)])
def test_long_messages_need_the_recurrence(hop, unsure):
    """Messages longer than 0.95 of the quickest pass (1 s) do not hide."""
    own = blocks((1, 2), (1, 2), (1, 2), hop, 4, 8)
    assert bool(own.estimate()[1][0]) == unsure
    two = blocks((1, 2), (1, 2), (1, 2), hop, 2, 8)
    assert bool(two.estimate()[1][0]) == unsure
    large = blocks((1, 2), (1, 2), (1, 2), hop, 16, 8)
    assert not large.estimate()[1][0], "too many passes"


def test_a_slow_last_stage_paces_the_pipeline():
    """Fill to the last stage, all its passes, and drain: (p - 1) 3 + m 6."""
    own = blocks((1, 2), (1, 2), (2, 4), 0.0, 4, 10)
    assert own.estimate()[0][0] == pytest.approx(3 * 3 + 10 * 6)
    assert own.seconds()[0] == pytest.approx(69.0)


def test_a_slow_first_chunk_of_interleaved_stages():
    """4 stages, 2 chunks, 4 micro-batches; passes of 3 s, 6 s through the first chunk.

    The last stage computes 4 x 6 s and waits 3 x 3 s while the pipeline fills and drains; the first
    chunk adds its 3 s to each of the 4 micro-batches.
    """
    own = blocks((2, 4), (1, 2), (1, 2), 0.0, 4, 4, 2)
    assert own.estimate()[0][0] == pytest.approx(45.0)
    forward, backward = [one(2.0), *[one(1.0)] * 7], [one(4.0), *[one(2.0)] * 7]
    assert uneven_seconds(forward, backward, one(0.0), 4, 4)[0] == pytest.approx(45.0)


@pytest.mark.parametrize("micro_batches", [4, 20, 21, 24, 29, 60, 61, 200])
@pytest.mark.parametrize("schedule", [GPIPE, ONE_F_ONE_B])
def test_recurrence_of_many_rounds(micro_batches, schedule):
    """Rounds that repeat are extrapolated: equal to all passes one by one."""
    forward, backward, pp = [1.0, 1.5, 1.1, 2.0], [2.0, 2.5, 2.2, 1.0], 4
    found = uneven_seconds(
        [one(f) for f in forward], [one(b) for b in backward], one(0.0), pp, micro_batches, schedule
    )
    passes = listed_passes(schedule, pp, micro_batches)
    ends = start_times(passes, lambda x: (forward if x.is_forward else backward)[x.place])
    assert found[0] == pytest.approx(ends[0], rel=1e-9)


@pytest.mark.parametrize("hop", [0.0, 0.25, 0.5])
def test_recurrence_with_messages(hop):
    """Equal passes hide hops in the steady state; filling and draining add 2 (p - 1) hops."""
    pp, micro_batches = 4, 4
    found = uneven_seconds([one(1.0)] * pp, [one(2.0)] * pp, one(hop), pp, micro_batches)
    passes = listed_passes(ONE_F_ONE_B, pp, micro_batches)
    ends = start_times(passes, lambda each: 1.0 if each.is_forward else 2.0, hop)
    assert found[0] == pytest.approx(ends[0])
