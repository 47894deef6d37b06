"""Pipelines whose gradients of weights fill what would be idle: zero bubble, ZB-V, dualpipe."""

from collections import Counter
from dataclasses import replace

import pytest

from paceline.errors import InputError
from paceline.hardware import catalogue
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.plan_choices import PipelineSchedule, Recompute
from paceline.predictor.predict import predict, prepare
from paceline.predictor.schedule.pipeline_orders import Part, listed_passes, peaks_held
from paceline.predictor.schedule.pipeline_tasks import ChunkTime, pipeline_tasks
from paceline.predictor.schedule.task_schedule import TaskSchedule
from paceline.predictor.search import PlanSearch
from paceline.predictor.whatif import what_if
from paceline.workload.workload import Workload

SPLIT = [each for each in PipelineSchedule if each.splits_backward]
SHAPES = [(2, 4), (4, 4), (4, 16), (8, 3), (8, 32)]


def seconds(schedule, pp, micro_batches, times, hop=0.0, exchange=0.0):
    """A pipeline of equal chunks: forward, gradients of inputs, gradients of weights."""
    forward, inputs, weights = (each / schedule.chunks_of_stage for each in times)
    chunk = ChunkTime(
        "chunk", forward, inputs + weights, exchange, exchange, hop, weight_seconds=weights
    )
    builder = TaskSchedule()
    chunks = [chunk] * (pp * schedule.chunks_of_stage)
    pipeline_tasks(builder, chunks, pp, micro_batches, schedule)
    return builder.build("").seconds


@pytest.mark.parametrize("schedule", SPLIT)
@pytest.mark.parametrize(("pp", "micro_batches"), SHAPES)
def test_every_pass_runs_once_behind_what_it_needs(schedule, pp, micro_batches):
    listed = listed_passes(schedule, pp, micro_batches)
    chunks = pp * schedule.chunks_of_stage
    assert Counter(work.part for work in listed) == dict.fromkeys(
        (Part.FORWARD, Part.INPUTS, Part.WEIGHTS), chunks * micro_batches
    )
    assert len(set(listed)) == len(listed)
    assert all(work.source < index for index, work in enumerate(listed))


@pytest.mark.parametrize("times", [(1, 1, 1), (1, 1.3, 0.7), (1, 2, 1), (1, 0.9, 1.2)])
@pytest.mark.parametrize(("pp", "micro_batches"), SHAPES)
@pytest.mark.thorough
def test_less_idle_than_1f1b_and_never_less_than_the_work(pp, micro_batches, times):
    work = micro_batches * sum(times)
    for schedule in SPLIT:
        found = seconds(schedule, pp, micro_batches, times)
        assert work < found < work + (pp - 1) * sum(times)


@pytest.mark.parametrize(("pp", "micro_batches"), [(2, 4), (4, 8), (8, 32)])
def test_zero_bubble_is_idle_as_its_authors_derive(pp, micro_batches):
    """(pp - 1) (forward + inputs - weights), and no more memory than 1F1B's first stage."""
    forward, inputs, weights = 1.0, 1.2, 0.8
    found = seconds(PipelineSchedule.ZERO_BUBBLE, pp, micro_batches, (forward, inputs, weights))
    idle = found - micro_batches * (forward + inputs + weights)
    assert idle == pytest.approx((pp - 1) * (forward + inputs - weights))
    for schedule in SPLIT:
        assert max(peaks_held(schedule, pp, micro_batches)) == pp


def test_a_v_of_equal_passes_is_idle_until_the_first_comes_by():
    found = seconds(PipelineSchedule.ZB_V, 4, 16, (1, 1, 1))
    assert found - 16 * 3 == pytest.approx(3 * 0.5)


def test_dualpipe_hides_messages_within_stages():
    apart, under = (
        seconds(schedule, 4, 16, (1, 1, 1), exchange=0.2)
        for schedule in (PipelineSchedule.ZB_V, PipelineSchedule.DUALPIPE)
    )
    assert under < apart
    assert seconds(PipelineSchedule.ZB_V, 4, 16, (1, 1, 1), hop=0.1) > 16 * 3 + 1.5


H100 = catalogue.cluster("dgx-h100").with_nodes(1)
GPT = Workload.of("gpt3_6.7b", 16, 2048, "bf16", "adam")


def predicted(schedule, **fields):
    chunks = 2 if schedule.is_v else 1
    plan = Plan(dp=2, pp=4, micro_batch=1, pipeline=schedule, interleave=chunks, **fields)
    return predict(GPT, H100, plan)


@pytest.mark.parametrize("schedule", SPLIT)
def test_predictions_gain_what_was_idle(schedule):
    plain = predicted(PipelineSchedule.ONE_F_ONE_B)
    found = predicted(schedule)
    assert plain.ideal_seconds < found.step_seconds < plain.step_seconds
    assert found.memory.activations_bytes >= plain.memory.activations_bytes * 0.9
    assert found.step_seconds == pytest.approx(found.step.seconds)


def test_the_first_stage_of_a_v_has_the_head_too():
    plain, v = (predicted(each, zero=1) for each in (PipelineSchedule.ZERO_BUBBLE, SPLIT[1]))
    assert v.memory.weights_bytes > plain.memory.weights_bytes


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"pp": 1}, "pp is 1"),
        ({"interleave": 2}, "needs 1 chunk per stage"),
        ({"pipeline": PipelineSchedule.ZB_V}, "needs 2 chunks per stage"),
        ({"zero": 3}, "not supported"),
    ],
)
def test_what_cannot_be_is_refused(fields, words):
    options = {"pp": 4, "pipeline": PipelineSchedule.ZERO_BUBBLE, **fields}
    with pytest.raises(InputError, match=words) as caught:
        Plan(**options)
    assert caught.value.hint


@pytest.mark.parametrize("schedule", list(PipelineSchedule))
def test_what_ifs_know_that_only_1f1b_interleaves(schedule):
    chunks = 2 if schedule.is_v else 1
    plan = Plan(dp=2, pp=4, micro_batch=1, pipeline=schedule, interleave=chunks)
    names = {each.change for each in what_if(prepare(GPT, H100, plan))}
    assert ("interleave 4" in names) == (schedule is PipelineSchedule.ONE_F_ONE_B)


def test_the_search_does_not_try_them():
    like = replace(Plan(pp=2, pipeline=PipelineSchedule.ZERO_BUBBLE), recompute=Recompute.NONE)
    with pytest.raises(InputError, match="do not model split backward"):
        PlanSearch(GPT, H100, 32, like=like)
