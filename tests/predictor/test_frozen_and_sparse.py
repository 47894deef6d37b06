"""Frozen weights and sparse tables in predictions: what is held, exchanged and updated."""

import pytest

from paceline.errors import InputError
from paceline.hardware import catalogue
from paceline.predictor.plan.plan import Plan
from paceline.predictor.predict import predict
from paceline.predictor.search.plan_search import PlanSearch
from paceline.predictor.sweep.data_parallel import DataParallelSweep
from paceline.workload.workload import Workload

CLUSTER = catalogue.cluster("hkbu-v100-pcie").shaped(2, 4)


def predicted(name, batch=1, sequence=None, precision="fp16", **plan):
    workload = Workload.of(name, batch, sequence, precision=precision, optimizer="adam")
    return predict(workload, CLUSTER, Plan(dp=8, **plan))


@pytest.mark.parametrize("zero", [0, 1, 2, 3])
def test_frozen_weights_are_held_and_have_neither_gradient_nor_state(zero):
    memory = predicted("llama2_7b_lora", sequence=128, zero=zero).memory
    trained = 32 * 16 * (4096 + 3 * 4096 + 4096 + 4096)
    shards = [8 if zero >= stage else 1 for stage in (3, 2, 1)]
    assert memory.weights_bytes == pytest.approx(2 * (6_738_415_616 + trained) / shards[0])
    assert memory.gradients_bytes == pytest.approx(2 * trained / shards[1])
    assert memory.optimizer_bytes == pytest.approx(12 * trained / shards[2])


def test_training_adapters_is_quicker_and_exchanges_little():
    whole, adapted = (predicted(name, sequence=128) for name in ("llama2_7b", "llama2_7b_lora"))
    assert adapted.step_seconds < whole.step_seconds / 3


def test_a_sparse_table_is_held_whole_and_exchanges_its_rows():
    name = "wide_deep_vocab2322444_emb16_fc2x1024"
    small, large = (predicted(name, batch, precision="fp32") for batch in (64, 1024))
    dense = 1_490_945 * 4
    looked_up = (26 * 16 + 2) * 4
    for found, batch in ((small, 64), (large, 1024)):
        assert found.memory.weights_bytes == (17 * 2_322_444 + 1_490_945) * 4
        assert found.memory.optimizer_bytes == 2 * found.memory.weights_bytes
        assert found.memory.gradients_bytes == dense + batch * looked_up


def test_sweeps_and_searches_refuse_gradients_that_grow_with_the_batch():
    workload = Workload.of("wide_deep_vocab2322444_emb16_fc2x1024", 64)
    with pytest.raises(InputError, match="sparse embedding tables"):
        DataParallelSweep(workload, CLUSTER, Plan(dp=8))
    with pytest.raises(InputError, match="sparse embedding tables"):
        PlanSearch(workload, CLUSTER, 512)
