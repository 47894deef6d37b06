"""Momenta of the optimizer in fewer bits: less memory, a shorter update, all else as it was."""

from dataclasses import replace
from itertools import pairwise

import pytest

from paceline.errors import InputError
from paceline.hardware import catalogue
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.plan_choices import OptimizerState
from paceline.predictor.predict import predict, prepare, schedule_job
from paceline.predictor.search import PlanSearch
from paceline.predictor.search.advice import prediction_of_plan
from paceline.predictor.sweep.data_parallel import DataParallelSweep
from paceline.predictor.training_run import TrainingRun
from paceline.workload.workload import Workload

CLUSTER = catalogue.cluster("dgx-a100").with_nodes(1)
WORKLOAD = Workload.of("gpt2", 4, 1024, "bf16", "adam")
WIDTHS = (OptimizerState.FP32, OptimizerState.BF16, OptimizerState.EIGHT_BIT)


def plan(state, **fields):
    return Plan(dp=8, optimizer_state=state, **fields)


@pytest.mark.parametrize("zero", [0, 1, 3])
def test_fewer_bits_take_less_memory_and_less_time(zero):
    found = [predict(WORKLOAD, CLUSTER, plan(state, zero=zero)) for state in WIDTHS]
    for more, less in pairwise(found):
        assert less.memory.optimizer_bytes < more.memory.optimizer_bytes
        assert less.step_seconds < more.step_seconds
    assert len({own.memory.activations_bytes for own in found}) == 1


def test_the_master_copy_stays():
    """4 bytes of 12 are the master copy; momenta are 8, 4, and 2 with a scale per 256."""
    each = [float(predict(WORKLOAD, CLUSTER, plan(s)).memory.optimizer_bytes) for s in WIDTHS]
    assert [own / each[0] * 12 for own in each] == pytest.approx([12, 8, 4 + 2 + 8 / 256])


def test_only_the_update_is_shorter():
    wide, short = (schedule_job(prepare(WORKLOAD, CLUSTER, plan(state))) for state in WIDTHS[:2])
    assert (short.times.whole_backward == wide.times.whole_backward).all()
    assert short.updates[0] < wide.updates[0]
    assert wide.seconds - short.seconds == pytest.approx(wide.updates[0] - short.updates[0])


def test_an_optimizer_without_momenta_is_refused():
    with pytest.raises(InputError, match="sgd has no state") as caught:
        predict(replace(WORKLOAD, optimizer="sgd"), CLUSTER, plan(OptimizerState.BF16))
    assert "--optimizer-state" in caught.value.hint


def test_the_arrays_of_the_search_say_what_the_scheduler_says():
    like = Plan(framework="megatron-lm", optimizer_state=OptimizerState.EIGHT_BIT)
    search = PlanSearch(WORKLOAD, CLUSTER, 32, like=like)
    found = search.run()
    for index in range(0, found.size, max(1, found.size // 12)):
        chosen = found.plan(index, like)
        assert chosen.optimizer_state is OptimizerState.EIGHT_BIT
        scheduled = prediction_of_plan(search, chosen)
        assert found.memory_bytes[index] == pytest.approx(float(scheduled.memory.total_bytes))


def test_sweeps_have_it():
    points = [
        DataParallelSweep(WORKLOAD, CLUSTER.with_nodes(2), Plan(optimizer_state=state))
        for state in WIDTHS
    ]
    updates = [float(own.update_seconds(1e8, 1e12)) for own in points]
    assert updates == sorted(updates, reverse=True)
    assert updates[0] > updates[-1]


def test_checkpoints_are_smaller():
    wide, short = (
        TrainingRun(predict(WORKLOAD, CLUSTER, plan(state)), samples=1e6).checkpoint_bytes
        for state in WIDTHS[:2]
    )
    parameters = WORKLOAD.profile.trainable_parameters
    assert wide - short == pytest.approx(4 * parameters)
