"""Pipelines without a timeline take what the scheduler says, to 1e-9."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.hardware import catalogue
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.plan_choices import WHOLE_BACKWARD, PipelineSchedule
from paceline.predictor.predict import predict
from paceline.predictor.schedule.pipeline_tasks import (
    ChunkTime,
    PipelineSegment,
    PipelineSharding,
    pipeline_tasks,
)
from paceline.predictor.schedule.pipeline_times import _columns, pipeline_clocks
from paceline.predictor.schedule.task_schedule import COMPUTE, NETWORK, TaskSchedule
from paceline.workload.workload import Workload

SAME = 1e-9
seconds = st.floats(0.0, 3.0)


@st.composite
def chunks(draw, count, sharded):
    """Chunks that all differ, some of them with messages under their last backward."""
    found = []
    for _ in range(count):
        sizes = draw(st.lists(st.tuples(seconds, st.sampled_from([0.0, 1e6])), max_size=3))
        segments = [
            PipelineSegment(1.0 / len(sizes), message, size, 0.01) for message, size in sizes
        ]
        shards = PipelineSharding(draw(seconds), 0.1 + draw(seconds), 1e6) if sharded else None
        found.append(
            ChunkTime(
                name="",
                forward_seconds=draw(st.floats(0.1, 3.0)),
                backward_seconds=draw(st.floats(0.1, 6.0)),
                forward_exchange_seconds=draw(st.sampled_from([0.0, 0.3])),
                backward_exchange_seconds=draw(st.sampled_from([0.0, 0.4])),
                send_seconds=draw(st.just(0.0) | seconds),
                send_bytes=1.0,
                segments=() if sharded else tuple(segments),
                forward_sharding=shards,
                backward_sharding=shards,
                launch_seconds=0.02 if sharded else 0.0,
            )
        )
    return found


@settings(deadline=None, max_examples=60)
@given(
    data=st.data(),
    pp=st.integers(2, 4),
    rounds=st.integers(1, 12),
    left=st.integers(0, 3),
    interleave=st.integers(1, 3),
    schedule=st.sampled_from(WHOLE_BACKWARD),
    interference=st.sampled_from([0.0, 0.2]),
    sharded=st.booleans(),
)
def test_clocks_agree_with_the_scheduler(
    data, pp, rounds, left, interleave, schedule, interference, sharded
):
    if schedule is PipelineSchedule.GPIPE:
        interleave = 1
    micro_batches = rounds * pp + (left % pp if interleave == 1 else 0)
    times = data.draw(chunks(pp * interleave, sharded))
    found = []
    for way in (pipeline_tasks, pipeline_clocks):
        builder = TaskSchedule(interference)
        waits = way(builder, times, pp, micro_batches, schedule)
        ends = [max(builder.end_of(task) for task in own) for own in waits]
        lanes = [builder.free_at(lane, s) for s in range(pp) for lane in (COMPUTE, NETWORK)]
        found.append(ends + lanes)
    assert found[1] == pytest.approx(found[0], rel=SAME)


def test_rounds_that_repeat_are_counted_and_not_gone_through():
    alike = [ChunkTime("", 1.0, 2.0, send_seconds=0.1, send_bytes=1.0) for _ in range(4)]
    for times in (alike, [*alike[:-1], replace(alike[-1], backward_seconds=2.5)]):
        steps = []
        for way in (pipeline_tasks, pipeline_clocks):
            _columns.cache_clear()
            builder = TaskSchedule()
            way(builder, times, 4, 400, PipelineSchedule.ONE_F_ONE_B)
            steps.append(builder.build().seconds)
        assert steps[1] == pytest.approx(steps[0], rel=SAME)
        assert _columns.cache_info().currsize == 1
        assert len(_columns(PipelineSchedule.ONE_F_ONE_B, 4, 12, 1).passes) == 2 * 4 * 12
        assert _columns.cache_info().hits == 1, "three rounds of four micro-batches"


@pytest.mark.parametrize("zero", [0, 1, 2, 3])
@pytest.mark.parametrize("interleave", [1, 2])
def test_a_predicted_pipeline_takes_what_its_timeline_does(zero, interleave):
    workload = Workload.of("gpt2", 32, 512, "bf16", "adam")
    plan = Plan(dp=4, tp=2, pp=2, zero=zero, interleave=interleave, micro_batch=1)
    for framework in ("megatron-lm", "torch-ddp"):
        found = predict(
            workload,
            catalogue.cluster("dgx-a100").with_nodes(2),
            replace(plan, framework=framework),
        )
        assert found.step_seconds == pytest.approx(found.step.seconds, rel=SAME)
