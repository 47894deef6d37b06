"""What is taken where a user names a model and a cluster and nothing else."""

import json

import pytest

import paceline as pl
from paceline.errors import InputError
from paceline.explore.answers import job_of
from paceline.explore.state import state_of

MODELS = ("llama3_8b", "llama3_70b", "llama2_13b", "mixtral_8x7b", "gpt3_175b")
SMALL = ("bert_large", "resnet50")
LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "max_position_embeddings": 8192,
}


@pytest.mark.parametrize("cluster", ["dgx-a100", "dgx-h100"])
@pytest.mark.parametrize("nodes", [1, 4, 16])
@pytest.mark.parametrize("model", [*MODELS, *SMALL])
@pytest.mark.thorough
def test_a_model_and_a_cluster_give_a_plan_that_fits_or_none(model, nodes, cluster):
    found = pl.predict(model, cluster, nodes=nodes)
    assert found.notes[0].startswith("chosen: ")
    assert found.fits != ("no plan fits" in found.notes[0])
    assert found.workload.precision == "bf16"
    tokens = found.samples_per_step * (found.workload.sequence or 1)
    if model not in SMALL:
        assert 1e6 <= tokens <= 4.3e6 and found.samples_per_step % found.devices == 0
    if model in SMALL:
        assert found.samples_per_step == 32 * found.devices
        assert (found.framework, found.plan.label) == ("torch-ddp", f"dp {found.devices}")


@pytest.mark.parametrize(
    ("model", "nodes", "framework", "recompute"),
    [
        ("gpt2_small", 1, "torch-ddp", "none"),
        ("llama2_13b", 4, "torch-fsdp", "none"),
        ("llama3_70b", 4, "torch-fsdp", "full"),
    ],
)
def test_the_simplest_plan_that_fits_is_taken(model, nodes, framework, recompute):
    found = pl.predict(model, "dgx-h100", nodes=nodes)
    assert (found.framework, str(found.plan.recompute)) == (framework, recompute)
    assert found.fits


def test_a_plan_too_large_for_fsdp_is_divided_by_tensor_and_pipeline_parallelism():
    words = {"nodes": 4, "seq": 32768, "framework": "megatron-lm"}
    found = pl.predict("llama3_70b", "dgx-h100", **words)
    assert found.fits
    assert found.plan.tp == 8
    assert found.plan.pp > 1
    assert "Megatron-LM dp" in found.notes[0]


@pytest.mark.parametrize(
    "given", [{"batch": 2}, {"precision": "fp32"}, {"recompute": "none"}, {"framework": "ddp"}]
)
def test_what_is_given_is_never_changed(given):
    found = pl.predict("llama3_70b", "dgx-h100", nodes=4, **given)
    own = {
        "batch": found.workload.batch,
        "precision": found.workload.precision,
        "recompute": str(found.plan.recompute),
        "framework": {"torch-ddp": "ddp"}.get(found.framework, found.framework),
    }
    assert own.items() >= given.items()


@pytest.mark.thorough
def test_degrees_imply_megatron_and_shards_of_weights_fsdp():
    assert pl.predict("llama3_8b", "dgx-h100", nodes=1, tp=8).framework == "megatron-lm"
    assert pl.predict("llama3_8b", "dgx-h100", nodes=1, zero=3).framework == "torch-fsdp"
    assert pl.predict("alexnet", "dgx-h100", nodes=1, tp=8).framework == "torch-ddp"


@pytest.mark.parametrize(
    ("dtype", "device", "precision"),
    [
        ({"torch_dtype": "float16"}, "a100_sxm_80gb", "fp16"),
        ({"dtype": "bfloat16"}, "a100_sxm_80gb", "bf16"),
        ({"torch_dtype": "bfloat16"}, "v100_sxm2_32gb", "amp_fp16"),
        ({}, "a100_sxm_80gb", "bf16"),
    ],
)
def test_the_dtype_of_a_configuration_is_taken_where_the_device_has_it(
    tmp_path, dtype, device, precision
):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**LLAMA, **dtype}))
    assert pl.predict(path, device=device).workload.precision == precision


def test_the_note_on_the_length_of_samples_is_left_out_where_it_is_given(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA))
    notes = {seq: pl.predict(path, "dgx-h100", nodes=1, seq=seq).notes for seq in (None, 8192)}
    assert any("unless --seq" in note for note in notes[None])
    assert not any("unless --seq" in note for note in notes[8192])
    assert not any("--seq" in note for note in pl.predict("qwen3_8b", "dgx-h100", seq=8192).notes)


def test_qlora_on_a_small_device():
    found = pl.predict("llama2_7b", device="rtx4090", qlora=True)
    assert (found.workload.precision, found.workload.batch) == ("bf16", 16)
    assert found.fits


@pytest.mark.thorough
def test_every_command_has_the_same_defaults():
    told = pl.predict("llama3_8b", "dgx-h100", nodes=2)
    base = pl.whatif("llama3_8b", "dgx-h100", nodes=2).base
    assert (base.notes[0], base.step_seconds) == (told.notes[0], told.step_seconds)
    advised = pl.advise("llama3_8b", "dgx-h100", nodes=2, global_batch=16, top=1)
    state = state_of({"model": "llama3_8b", "cluster": "dgx-h100", "nodes": 2}, {})
    explored = job_of(state, {}).options
    assert advised.search.workload.precision == explored["precision"] == "bf16"
    assert (explored["batch"], explored["framework"]) == (16, "torch-fsdp")


@pytest.mark.thorough
def test_options_of_the_plan_constrain_advise():
    job = {"nodes": 2, "global_batch": 128}
    found = pl.advise("llama3_8b", "dgx-h100", **job, zero=1, tp=8)
    assert {(own.plan.zero, own.plan.tp) for own in found.best} == {(1, 8)}
    free = pl.advise("llama3_8b", "dgx-h100", **job, framework="megatron-lm")
    assert free.best[0].step_seconds < found.best[0].step_seconds
    links = ["ib_ndr_400g", "eth_100g"]
    several = pl.advise("llama3_8b", "dgx-h100", **job, link=links, top=1)
    assert [own.cluster.inter.name for own in several.best] == links
    with pytest.raises(InputError, match="no plan on these devices has tp 3"):
        pl.advise("llama3_8b", "dgx-h100", **job, tp=3)
    with pytest.raises(InputError, match="a measurement belongs to one plan"):
        pl.advise("llama3_8b", "dgx-h100", **job, measured_step="2s")


@pytest.mark.parametrize(
    ("fixed", "of"),
    [
        ({"cp": 2}, lambda own: own.plan.cp == 2),
        ({"offload": "optimizer"}, lambda own: own.plan.offload == ("optimizer",)),
        ({"qlora": True}, lambda own: own.workload.frozen_bytes is not None),
        ({"recompute": "every:2"}, lambda own: own.plan.recompute_every == 2),
        ({"micro_batches": 4, "pp": 2}, lambda own: own.plan.batches(own.workload.batch)[1] == 4),
    ],
)
@pytest.mark.thorough
def test_properties_outside_the_arrays_constrain_advise(fixed, of):
    found = pl.advise("gpt2", "dgx-a100", nodes=1, global_batch=64, top=2, **fixed)
    assert found.best and all(of(own) for own in found.best)
    single = found.best[0]
    assert single.fits


@pytest.mark.torch
def test_a_captured_model_is_advised_without_tensor_parallelism(tmp_path):
    pytest.importorskip("torch")
    path = tmp_path / "own.py"
    path.write_text("from torch import nn\ndef make(): return nn.Linear(64, 64)\n")
    found = pl.advise(f"{path}:make", "dgx-h100", nodes=1, global_batch=64, input=["8x64"])
    assert {own.plan.tp for own in found.best} == {1}
    assert all(degrees.tp == 1 for degrees in found.search.space.degrees())
