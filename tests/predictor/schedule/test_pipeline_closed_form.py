"""Times of pipelines against the scheduler, which places every pass and message."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.predictor.plan.plan_choices import PipelineSchedule
from paceline.predictor.schedule.fsdp_prefetch import FsdpUnit, fsdp_pass_seconds
from paceline.predictor.schedule.pipeline_closed_form import EqualBlocks, TimedChunk, uneven_seconds
from paceline.predictor.schedule.pipeline_tasks import ChunkTime, pipeline_tasks
from paceline.predictor.schedule.task_schedule import TaskSchedule
from paceline.step import Phase, Task
from paceline.step.schedule import schedule

ONE_F_ONE_B, GPIPE = PipelineSchedule.ONE_F_ONE_B, PipelineSchedule.GPIPE
EXTRA = st.floats(0, 3)
HOP = st.sampled_from([0.0, 0.01, 0.1, 0.5, 1.0, 3.0])


def scheduled(forward, backward, hop, pp, micro_batches, kind=ONE_F_ONE_B):
    chunks = [
        ChunkTime(f"c{i}", f, b, send_seconds=hop, send_bytes=1.0)
        for i, (f, b) in enumerate(zip(forward, backward, strict=True))
    ]
    builder = TaskSchedule()
    pipeline_tasks(builder, chunks, pp, micro_batches, kind)
    return builder.build().seconds


def one(number):
    return np.array([float(number)])


def equal_blocks(first, middle, last, hop, pp, micro_batches, interleave=1):
    chunks = [TimedChunk(one(f), one(b)) for f, b in (first, middle, last)]
    return EqualBlocks(*chunks, one(hop), one(pp), one(micro_batches), one(interleave))


def expanded(first, middle, last, count):
    passes = [first, *[middle] * (count - 2), last]
    return [f for f, _ in passes], [b for _, b in passes]


@settings(max_examples=150, deadline=None)
@given(st.integers(2, 8), st.integers(1, 40), st.floats(1, 3), EXTRA, EXTRA, EXTRA, EXTRA, HOP)
def test_plain_pipelines_take_what_the_scheduler_says(pp, micro_batches, b, a1, a2, z1, z2, hop):
    first, middle, last = (1 + a1, b + a2), (1.0, b), (1 + z1, b + z2)
    own = equal_blocks(first, middle, last, hop, pp, micro_batches)
    passes = expanded(first, middle, last, pp)
    expected = scheduled(*passes, hop, pp, micro_batches)
    assert own.seconds()[0] == pytest.approx(expected, rel=0.01)
    expected = scheduled(*passes, hop, pp, micro_batches, GPIPE)
    assert own.gpipe_seconds()[0] == pytest.approx(expected)


@settings(max_examples=80, deadline=None)
@given(
    st.integers(2, 5),
    st.integers(1, 8),
    st.integers(2, 4),
    st.floats(1, 3),
    EXTRA,
    EXTRA,
    EXTRA,
    EXTRA,
    HOP,
)
def test_interleaved_pipelines_take_what_the_scheduler_says(
    pp, rounds, interleave, b, a1, a2, z1, z2, hop
):
    first, middle, last = (1 + a1, b + a2), (1.0, b), (1 + z1, b + z2)
    own = equal_blocks(first, middle, last, hop, pp, rounds * pp, interleave)
    passes = expanded(first, middle, last, pp * interleave)
    expected = scheduled(*passes, hop, pp, rounds * pp)
    assert own.seconds()[0] == pytest.approx(expected, rel=0.01)


@settings(max_examples=80, deadline=None)
@given(st.data(), st.integers(2, 5), st.integers(1, 12), st.integers(1, 3), HOP)
def test_stages_that_all_differ_take_what_the_scheduler_says(data, pp, rounds, interleave, hop):
    times = st.lists(st.floats(0.3, 4), min_size=pp * interleave, max_size=pp * interleave)
    forward, backward = data.draw(times), data.draw(times)
    found = uneven_seconds(
        [one(f) for f in forward], [one(b) for b in backward], one(hop), pp, rounds * pp
    )
    expected = scheduled(forward, backward, hop, pp, rounds * pp)
    assert found[0] == pytest.approx(expected, rel=0.01)


def test_many_pipelines_are_evaluated_at_once():
    random = np.random.default_rng(4)
    extra = random.uniform(0, 2, (4, 50))
    pp, count = random.integers(2, 6, 50), random.integers(1, 30, 50)
    ones, hops = np.ones(50), np.full(50, 0.05)
    together = EqualBlocks(
        TimedChunk(1 + extra[0], 2 + extra[1]),
        TimedChunk(ones, 2 * ones),
        TimedChunk(1 + extra[2], 2 + extra[3]),
        hops,
        pp.astype(float),
        count.astype(float),
        ones,
    ).seconds()
    for i in range(0, 50, 7):
        first, last = (1 + extra[0, i], 2 + extra[1, i]), (1 + extra[2, i], 2 + extra[3, i])
        alone = equal_blocks(first, (1.0, 2.0), last, 0.05, pp[i], count[i]).seconds()
        assert together[i] == pytest.approx(alone[0])


UNIT = st.builds(FsdpUnit, *[st.floats(0.01, 2)] * 3, st.integers(1, 6))


@given(st.lists(UNIT, min_size=1, max_size=4))
def test_a_pass_gathers_one_unit_ahead_and_scatters_behind(units):
    every = [unit for unit in units for _ in range(unit.count)]
    tasks, computed, gathered = [], [], []

    def add(lane, seconds, *after):
        tasks.append(Task("", Phase.OTHER, lane, seconds, after))
        return len(tasks) - 1

    for number, unit in enumerate(every):
        while len(gathered) < min(number + 2, len(every)):
            held = computed[len(gathered) - 2 : len(gathered) - 1] if len(gathered) > 1 else []
            gathered.append(add("network", every[len(gathered)].gather, *held))
        computed.append(add("compute", unit.work, gathered[number]))
        add("network", unit.scatter, computed[-1])
    assert float(fsdp_pass_seconds(units)) == pytest.approx(schedule(tasks).seconds)


def test_the_first_gather_of_every_pass_is_exposed():
    unit = FsdpUnit(work=1.0, gather=0.2, count=10)
    assert float(fsdp_pass_seconds([unit])) == pytest.approx(10 + 0.2)
