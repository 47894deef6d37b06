"""Whole tensors whose memory waits for the device: the host runs ahead, and how far."""

import numpy as np
import pytest

from paceline.constants import number
from paceline.hardware import catalogue
from paceline.predictor.memory.allocator_lag import unreleased_bytes
from paceline.predictor.plan.plan import Plan
from paceline.predictor.predict import model_step, predict, prepare
from paceline.predictor.search import PlanSearch
from paceline.predictor.uncertainty.step_corrections import NO_CORRECTIONS
from paceline.workload.workload import Workload

H100 = catalogue.cluster("dgx-h100").with_nodes(2)
LLAMA = Workload.of("llama2-7b", 1, 4096, "bf16", "adam")
PARTS = model_step(prepare(LLAMA, H100.with_devices(1), Plan(framework="nanotron"))).parts
WHOLE, LARGEST = 100.0, 1.0
GATHERED = 2 * LARGEST
SLOW = 2 * number("spread.memory.host_time") * PARTS.cluster.device.peak("bf16") * WHOLE
"""FLOP that take the device twice as long as the host needs to issue them."""


def waiting(forward_flops, tp, pp, micro_batches, whole=WHOLE):
    found = unreleased_bytes(PARTS, whole, LARGEST, forward_flops, tp, pp, micro_batches)
    return float(found) - GATHERED


def test_the_queue_of_the_device_limits_how_far_the_host_runs_ahead():
    queue = number("spread.memory.tensors_ahead")
    assert waiting(SLOW / 4, 8, 1, 8) == waiting(SLOW, 8, 1, 8) == waiting(SLOW, 8, 4, 8) == queue


def test_one_pass_of_one_micro_batch_leaves_half_of_it_waiting():
    assert waiting(SLOW, 8, 1, 1, whole=20.0) == 10.0


def test_pipelines_of_a_device_that_outruns_its_host_wait_for_the_passes_that_fill_them():
    assert waiting(SLOW / 40, 8, 2, 8, whole=10.0) == 0.0
    assert waiting(SLOW / 40, 8, 4, 8, whole=10.0) == pytest.approx(2 * 10.0)


def test_hosts_of_groups_beyond_a_node_issue_fewer_tensors():
    inside, beyond = (waiting(SLOW / 400, tp, 8, 16) for tp in (8, 32))
    assert beyond < inside / 2


def test_nothing_waits_without_tensor_parallelism():
    assert float(unreleased_bytes(PARTS, 0.0, 0.0, SLOW, 1, 1, 1)) == 0.0


@pytest.mark.thorough
def test_the_search_says_what_the_scheduler_says(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('[equal]\ninherits = "nanotron"\nstages_by_cost = false\n')
    search = PlanSearch(LLAMA, H100, 128, (), Plan(framework=f"{path}:equal"))
    found = search.run()
    for index in np.random.default_rng(5).choice(found.size, 40, replace=False):
        plan = found.plan(int(index), search.like)
        workload = LLAMA.with_batch(128 // plan.dp)
        own = predict(workload, H100.with_devices(plan.devices), plan, corrections=NO_CORRECTIONS)
        assert found.memory_bytes[index] == pytest.approx(float(own.memory.total_bytes)), plan


def test_attention_of_grouped_queries_keeps_keys_and_values_once():
    def more(model):
        workload = Workload.of(model, 1, 4096, "bf16", "adam")
        plans = (Plan(framework=name) for name in ("nanotron", "torch-ddp"))
        steps = (model_step(prepare(workload, H100.with_devices(1), plan)) for plan in plans)
        own, usual = (step.parts.total([s.at(1) for s in step.parts.kept.sizes]) for step in steps)
        return own - usual

    assert more("llama3_8b") == 0.0
    assert more("llama2-7b") == 32 * 4096 * 2 * 4096 * 2
