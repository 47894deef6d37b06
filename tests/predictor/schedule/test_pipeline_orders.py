import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.errors import InputError
from paceline.predictor.plan.plan_choices import WHOLE_BACKWARD, PipelineSchedule
from paceline.predictor.schedule.pipeline_orders import stage_order
from paceline.predictor.schedule.pipeline_tasks import ChunkTime, pipeline_tasks
from paceline.predictor.schedule.task_schedule import TaskSchedule

SCHEDULES = st.sampled_from(WHOLE_BACKWARD)


def pipeline(chunks, pp, micro_batches, kind=PipelineSchedule.ONE_F_ONE_B):
    builder = TaskSchedule()
    pipeline_tasks(builder, chunks, pp, micro_batches, kind)
    return builder.build()


def equal(pp, interleave=1, hop=0.0):
    count = pp * interleave
    return [
        ChunkTime(f"c{i}", 1 / count, 2 / count, send_seconds=hop, send_bytes=1.0)
        for i in range(count)
    ]


@given(SCHEDULES, st.integers(1, 6), st.integers(1, 3), st.integers(1, 3))
def test_every_micro_batch_goes_forward_and_backward_once_through_each_chunk(
    kind, pp, rounds, interleave
):
    if kind is PipelineSchedule.GPIPE:
        interleave = 1
    micro_batches = rounds * pp
    for stage in range(pp):
        order = stage_order(kind, stage, pp, micro_batches, interleave)
        seen = {(p.is_forward, p.micro_batch, p.place) for p in order}
        assert len(order) == len(seen) == 2 * micro_batches * interleave


@pytest.mark.parametrize(("pp", "micro_batches", "interleave"), [(4, 8, 1), (8, 64, 3), (4, 8, 2)])
def test_the_bubble_is_what_the_formula_says(pp, micro_batches, interleave):
    step = pipeline(equal(pp, interleave), pp, micro_batches)
    useful = micro_batches * 3 / pp
    assert step.seconds / useful - 1 == pytest.approx((pp - 1) / (micro_batches * interleave))


def test_more_micro_batches_fill_the_pipeline():
    one = pipeline(equal(4), 4, 4).seconds / 4
    many = pipeline(equal(4), 4, 64).seconds / 64
    assert many < one


def test_interleaving_needs_whole_rounds():
    with pytest.raises(InputError, match="multiple of pp = 4 micro-batches"):
        stage_order(PipelineSchedule.ONE_F_ONE_B, 0, 4, 6, 2)


def test_exchanges_within_a_stage_lengthen_every_pass():
    plain = equal(4)
    chunks = [ChunkTime(c.name, c.forward_seconds, c.backward_seconds, 0.01, 0.02) for c in plain]
    longer = pipeline(chunks, 4, 8).seconds
    assert longer == pytest.approx(pipeline(plain, 4, 8).seconds + 0.03 * 11)
