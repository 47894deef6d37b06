"""What rows state of plans in their own ways."""

import pytest

from paceline.validation.published_job import job_of
from paceline.validation.row_schema import read_cells

ROW = {
    "id": "one",
    "family": "mine",
    "framework": "megatron_lm",
    "model": "gpt3_175b",
    "precision": "amp_fp16",
    "device": "a100_sxm_80gb",
    "devices_per_node": "8",
    "nodes": "8",
    "devices": "64",
    "dp": "1",
    "tp": "8",
    "pp": "8",
    "cp": "1",
    "micro_batches": "64",
    "global_batch": "64",
    "group": "g",
    "throughput": "4.6",
}


def plan_of(**cells):
    return job_of(read_cells({**ROW, **cells}).configuration).plan


@pytest.mark.parametrize(
    ("cells", "chunks"),
    [
        ({}, 1),
        ({"notes": "full recompute; interleaving 3; as printed"}, 3),
        ({"interleave": "2"}, 2),
        ({"interleave": "2", "notes": "interleaving 3"}, 2),
        ({"pp": "1", "dp": "8", "notes": "interleaving 3"}, 1),
    ],
)
def test_interleaving_is_a_column_or_a_note(cells, chunks):
    assert plan_of(**cells).interleave == chunks


@pytest.mark.parametrize(
    ("cells", "count"),
    [
        ({}, 64),
        ({"micro_batches": ""}, 64),
        ({"micro_batches": "", "micro_batch_size": "4"}, 16),
        ({"micro_batches": "", "pp": "1", "dp": "8"}, 1),
    ],
)
def test_a_pipeline_has_micro_batches_of_one_sample_unless_stated(cells, count):
    assert plan_of(**cells).micro_batches == count


@pytest.mark.parametrize(
    ("cells", "divided"),
    [
        ({}, False),
        ({"method": "sp"}, True),
        ({"method": "1F1B; SP"}, True),
        ({"method": "spread"}, False),
        ({"framework": "nanotron"}, True),
        ({"framework": "nemo_megatron", "tp": "1", "dp": "8"}, False),
    ],
)
def test_sequence_parallelism_is_stated_or_the_frameworks_habit(cells, divided):
    assert plan_of(**cells).sequence_parallel is divided


@pytest.mark.parametrize(
    ("cells", "degree"),
    [
        ({"model": "mixtral_8x7b", "ep": "8"}, 8),
        ({"model": "mixtral_8x7b"}, 1),
        ({"model": "mixtral_8x7b", "ep": "3"}, 1),
        ({"model": "llama2_7b", "ep": "8"}, 1),
    ],
)
def test_expert_parallelism_requires_experts(cells, degree):
    spread = {"dp": "8", "tp": "8", "pp": "1", "micro_batches": "8"}
    assert plan_of(**spread, **cells).ep == degree


def test_mixed_precision_uses_the_format_of_the_device():
    cells = {"precision": "mixed", "model": "resnet50", "batch_unit": "images"}
    alone = {"nodes": "1", "devices_per_node": "1", "devices": "1", "tp": "1", "pp": "1"}
    row = {**ROW, **cells, **alone, "micro_batches": "1"}
    on = {
        name: job_of(read_cells({**row, "device": name}).configuration)
        for name in ("a100_sxm_80gb", "xeon_8480")
    }
    assert on["a100_sxm_80gb"].workload.precision == "amp_fp16"
    assert on["xeon_8480"].workload.precision == "amp_bf16"
    assert not on["xeon_8480"].cold_obstacle
