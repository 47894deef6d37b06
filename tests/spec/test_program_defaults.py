"""Defaults of named programs are those of their documentation; stated options win."""

import pytest

import paceline as pl
from paceline.predictor.framework_profiles import framework
from paceline.predictor.plan.interleaving import largest_interleave
from paceline.spec.program_defaults import micro_batches

JOB = {"device": "h100_sxm_80gb", "seq": 4096, "precision": "bf16"}
LLAMA = {**JOB, "topology": "8x8", "tp": 4, "pp": 4, "global_batch": 128}


@pytest.mark.parametrize(
    ("layers", "pp", "chunks"), [(80, 4, 20), (126, 16, 8), (62, 8, 8), (30, 4, 8), (31, 8, 1)]
)
def test_interleaving_fills_all_chunks_equally(layers, pp, chunks):
    assert largest_interleave(layers, pp) == chunks


@pytest.mark.parametrize(
    ("given", "count"),
    [
        ({"global_batch": 128, "micro_batch": 2}, 16),
        ({"micro_batches": 7, "global_batch": 128}, 7),
        ({"batch": 8}, 8),
        ({}, 1),
    ],
)
def test_micro_batches_of_a_pipeline(given, count):
    assert micro_batches(given, 4) == count


def test_nemo_interleaves_and_shards_the_optimizer():
    found = pl.predict("llama3_70b", framework="nemo", **LLAMA)
    assert (found.plan.interleave, found.plan.zero) == (20, 1)
    assert found.plan.tp_overlap
    text = " ".join(found.notes)
    assert "20 chunks per stage" in text
    assert "--interleave" in text


def test_stated_options_win():
    stated = {"interleave": 2, "zero": 2, "tp_overlap": False, "recompute": "none"}
    plan = pl.predict("llama3_70b", framework="nemo", **LLAMA, **stated).plan
    assert (plan.interleave, plan.zero, plan.tp_overlap) == (2, 2, False)
    assert plan.format_recompute == "none"


def test_a_pipeline_with_too_few_micro_batches_is_not_interleaved():
    few = {**LLAMA, "global_batch": 24}
    assert pl.predict("llama3_70b", framework="nemo", **few).plan.interleave == 1


def test_torchtitan_recomputes_by_operation_and_deepspeed_states_no_tuning():
    titan = pl.predict("llama3_8b", framework="torchtitan", topology="1x8", **JOB)
    assert titan.plan.format_recompute == "op"
    assert any("tuning reference" in note for note in titan.notes)
    assert framework("deepspeed").tuning == framework("torch-fsdp").tuning == ""


@pytest.mark.parametrize("name", ["megatron-bridge", "nemo", "maxtext", "torchtitan", "hf-trainer"])
def test_programs_are_known_by_their_names(name):
    assert framework(name).title


def test_superchips_offload_activations_before_they_recompute():
    job = {"seq": 8192, "precision": "bf16", "global_batch": 128, "micro_batch": 2, "zero": 3}
    gb200, h100 = (
        pl.predict("llama3_70b", framework="nemo", device=name, topology=shape, **job).plan
        for name, shape in (("gb200", "16x4"), ("h100_sxm_80gb", "8x8"))
    )
    assert [str(each) for each in gb200.offload] == ["activations"]
    assert gb200.format_recompute == "none"
    assert not h100.offload


def test_embedding_and_head_count_as_layers_of_a_pipeline():
    job = {**JOB, "topology": "32x8", "tp": 8, "pp": 16, "global_batch": 128}
    found = pl.predict("llama3_405b", framework="nemo", **job)
    assert found.plan.interleave == 8
    layers = found.timeline.step.communication.chunks
    assert len(layers) == 128
    names = [node.name for node in found.workload.graph.nodes]
    assert names[layers[0].first : layers[0].last] == ["embedding"]
    assert names[layers[-1].last - 1] == "loss"
    with pytest.raises(pl.PacelineError, match="cannot fill"):
        pl.predict("llama3_405b", framework="nemo", interleave=9, **job)


@pytest.mark.parametrize(
    ("name", "recompute"),
    [("trl", "full"), ("unsloth", "full"), ("torchtune", "full"), ("axolotl", "none")],
)
def test_fine_tuning_programs_recompute_by_default_as_their_configurations_do(name, recompute):
    found = pl.predict("llama3_8b", "dgx-h100", nodes=1, lora=16, framework=name)
    assert found.fits and found.plan.format_recompute == recompute
    if name in ("trl", "unsloth"):
        assert found.plan.zero == 0, "DDP, if it fits"
