"""A plan in the words of the programs that people train with."""

import json
from dataclasses import replace

import pytest

from paceline.errors import InputError, UnknownNameError
from paceline.predictor.emit.program_flags import LAUNCHES, PROGRAMS, program_flags
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.plan_choices import (
    ContextForm,
    Offload,
    OptimizerState,
    PipelineSchedule,
    Recompute,
)
from paceline.spec.job_options import EMITTED
from paceline.workload.adapters import QUANTISED_BYTES, with_adapters
from paceline.workload.workload import Workload

WORKLOAD = Workload.of("gpt3_175b", 96, 2048, "bf16", "adam")
PLAN = Plan(
    dp=16,
    tp=8,
    pp=4,
    zero=1,
    micro_batch=4,
    interleave=6,
    recompute=Recompute.FULL,
    sequence_parallel=True,
)


def in_each_program(plan, workload):
    """The plan in every program; FSDP, which has no ZeRO-1, shards gradients too."""
    fsdp = replace(plan, zero=2) if plan.zero == 1 else plan
    return {
        name: program_flags(name, fsdp if name == "fsdp" else plan, workload) for name in PROGRAMS
    }


def test_megatron_is_told_every_degree():
    text = program_flags("megatron", PLAN, WORKLOAD).text
    for flag in (
        *("--tensor-model-parallel-size 8", "--pipeline-model-parallel-size 4", "--bf16"),
        *("--num-virtual-stages-per-pipeline-rank 6", "--micro-batch-size 4", "--seq-length 2048"),
        *("--global-batch-size 1536", "--use-distributed-optimizer", "--sequence-parallel"),
        "--recompute-granularity full",
    ):
        assert flag in text
    assert "fsdp" not in text


def test_torchtitan_multiplies_to_the_devices():
    text = program_flags("torchtitan", PLAN, WORKLOAD).text
    words = dict(line.rstrip(" \\").removeprefix("--").split(" ") for line in text.splitlines())
    degrees = [
        int(words[f"parallelism.{name}_degree"])
        for name in (
            *("data_parallel_replicate", "data_parallel_shard", "tensor_parallel"),
            *("pipeline_parallel", "context_parallel"),
        )
    ]
    assert degrees[0] * degrees[1] * degrees[2] * degrees[3] * degrees[4] == PLAN.devices
    assert words["parallelism.pipeline_parallel_schedule"] == "Interleaved1F1B"
    assert words["parallelism.pipeline_parallel_layers_per_stage"] == "4"
    assert words["activation_checkpoint.mode"] == "full"


def test_some_blocks_computed_again_are_said_in_each_program():
    plan = replace(PLAN, recompute_every=2)
    found = in_each_program(plan, WORKLOAD)
    assert "activation_checkpoint.mode selective" in found["torchtitan"].text
    assert "activation_checkpoint.selective_ac_option 2" in found["torchtitan"].text
    assert "--recompute-method block" in found["megatron"].text
    assert "--recompute-num-layers 2" in found["megatron"].text, "of 4 blocks in each chunk"
    assert any("first ones of each stage" in words for words in found["megatron"].missing)
    assert any("one block in 2" in words for words in found["deepspeed"].missing)
    assert "# one block in 2" in found["fsdp"].text


GROUPED = Plan(dp=32, tp=2, zero=3, micro_batch=3, shard_group=4)


def test_groups_of_shards_are_said_in_each_program():
    found = in_each_program(GROUPED, WORKLOAD)
    assert "--num-distributed-optimizer-instances 8" in found["megatron"].text
    assert "--outer-dp-sharding-strategy no_shard" in found["megatron"].text
    assert "data_parallel_replicate_degree 8 " in found["torchtitan"].text
    assert "data_parallel_shard_degree 4 " in found["torchtitan"].text
    assert "MiCS" in found["deepspeed"].missing[0]
    assert '[8, 4, 2], mesh_dim_names=["copies", "dp", "tp"]' in found["fsdp"].text
    assert 'shards = mesh["copies", "dp"]' in found["fsdp"].text


@pytest.mark.parametrize(("state", "width"), [("bf16", "bf16"), ("8bit", "fp8")])
def test_short_momenta_are_a_flag_or_a_change_of_the_program(state, width):
    plan = replace(PLAN, optimizer_state=OptimizerState(state))
    found = in_each_program(plan, WORKLOAD)
    assert f"--exp-avg-sq-dtype {width}" in found.pop("megatron").text
    for own in found.values():
        assert any("bf16 state" in word or "AdamW8bit" in word for word in own.missing)
    whole = program_flags("megatron", replace(plan, zero=0), WORKLOAD)
    assert any("--use-distributed-optimizer" in word for word in whole.missing)


def test_deepspeed_batches_multiply():
    plan = Plan(dp=16, zero=3, micro_batch=2)
    found = json.loads(program_flags("deepspeed", plan, WORKLOAD).text)
    assert found["zero_optimization"]["stage"] == 3
    assert found["train_batch_size"] == (
        found["train_micro_batch_size_per_gpu"] * found["gradient_accumulation_steps"] * 16
    )
    assert found["bf16"] == {"enabled": True}


@pytest.mark.parametrize(("zero", "words"), [(0, "replicate("), (2, "=False"), (3, "=True")])
def test_fsdp_shards_as_the_stage_says(zero, words):
    assert words in program_flags("fsdp", Plan(dp=16, zero=zero), WORKLOAD).text


def test_fsdp_reduces_over_data_and_context_ranks_in_the_precision_of_the_plan():
    text = program_flags("fsdp", Plan(dp=8, cp=2, zero=3), LONG).text
    assert 'mesh["dp", "cp"]._flatten("dp_cp")' in text
    assert "fully_shard(model, mesh=shards, mp_policy=policy, reshard_after_forward=True)" in text
    assert "MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)" in text
    compile(text, "emitted", "exec")
    assert "policy" not in program_flags("fsdp", Plan(dp=8), replace(LONG, precision="fp32")).text


def test_fsdp_has_no_zero_1():
    with pytest.raises(InputError, match="ZeRO-1"):
        program_flags("fsdp", Plan(dp=8, zero=1), LONG)


def test_what_a_program_cannot_be_told_is_said():
    found = program_flags("deepspeed", PLAN, WORKLOAD)
    assert any("PipelineModule" in words for words in found.missing)
    assert any("interleaved" in words for words in found.missing)
    assert any("pipelining" in words for words in in_each_program(PLAN, WORKLOAD)["fsdp"].missing)
    uneven = Plan(dp=1, pp=5, micro_batch=1)
    assert program_flags("megatron", uneven, WORKLOAD).missing


def test_an_unknown_program_is_refused():
    with pytest.raises(UnknownNameError):
        program_flags("mesh-tensorflow", PLAN, WORKLOAD)
    assert {*PROGRAMS, *LAUNCHES} == set(EMITTED)


LONG = Workload.of("llama2_7b", 8, 4096, "bf16", "adam")


@pytest.mark.parametrize(
    ("form", "megatron", "rotation"),
    [("ring", "p2p", "alltoall"), ("gather", "allgather", "allgather"), ("ulysses", "a2a", "")],
)
def test_forms_of_context_parallelism_have_their_names(form, megatron, rotation):
    plan = Plan(dp=2, cp=4, zero=3, cp_impl=ContextForm(form))
    found = in_each_program(plan, LONG)
    assert f"--cp-comm-type {megatron}" in found["megatron"].text
    for name in ("torchtitan", "fsdp"):
        assert rotation in found[name].text
        assert any("not support" in words for words in found[name].missing) == (not rotation)
    assert any("is Ulysses" in words for words in found["deepspeed"].missing) == bool(rotation)


def test_offload_overlap_and_chosen_operations_are_told_or_said_to_be_missing():
    plan = Plan(
        dp=4,
        tp=2,
        zero=1,
        sequence_parallel=True,
        tp_overlap=True,
        offload=(Offload.OPTIMIZER, Offload.ACTIVATIONS),
        recompute=Recompute.OPERATION,
    )
    found = in_each_program(plan, LONG)
    for flag in ("--tp-comm-overlap", "--optimizer-cpu-offload", "--cpu-offloading-num-layers 31"):
        assert flag in found["megatron"].text
    assert any("--recompute-modules" in words for words in found["megatron"].missing)
    for flag in ("selective_ac_option op", "enable_cpu_offload", "enable_async_tensor_parallel"):
        assert flag in found["torchtitan"].text
    settings = json.loads(found["deepspeed"].text)
    assert settings["zero_optimization"]["offload_optimizer"]["device"] == "cpu"
    assert settings["activation_checkpointing"] == {"cpu_checkpointing": True}
    assert "save_on_cpu" in found["fsdp"].text
    assert "checkpoint_wrapper" not in found["fsdp"].text


def test_schedules_that_split_backward_are_pytorchs():
    plan = Plan(pp=4, interleave=2, micro_batch=1, pipeline=PipelineSchedule.ZB_V)
    found = in_each_program(plan, LONG)
    assert "pipeline_parallel_schedule ZBVZeroBubble" in found["torchtitan"].text
    assert any("ScheduleZBVZeroBubble" in words for words in found["fsdp"].missing)
    for name in ("megatron", "deepspeed"):
        assert any("no schedule zb-v" in words for words in found[name].missing)


def test_adapters_are_a_change_of_the_program():
    adapted = replace(LONG, graph=with_adapters(LONG.graph, 8), frozen_bytes=QUANTISED_BYTES)
    found = in_each_program(Plan(dp=8), adapted)
    assert all("adapters" in " ".join(found[name].missing) for name in ("megatron", "torchtitan"))
    for name in ("deepspeed", "fsdp"):
        assert "LoraConfig(r=8" in " ".join(found[name].missing)
        assert "load_in_4bit" in " ".join(found[name].missing)
