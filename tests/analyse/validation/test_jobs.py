"""What rows state of plans in their own ways."""

import pytest

from paceline.analyse.validation.jobs import job_of
from paceline.analyse.validation.schema import read_cells

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
