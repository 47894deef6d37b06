"""Complete settings of plain and of full plans, as the programs document them.

megatron: ``megatron/training/arguments.py``; torchtitan: ``torchtitan/config/job_config.py``;
DeepSpeed: the configuration JSON; FSDP2: ``torch.distributed.fsdp.fully_shard``.
"""

import json
import tomllib

import pytest
import yaml

import paceline as pl
from paceline.predictor.emit.program_flags import program_flags
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.plan_choices import OptimizerState, PipelineSchedule, Recompute
from paceline.workload.workload import Workload

GPT2 = Workload.of("gpt2", 8, 1024, "bf16", "adam")
PLAIN = Plan(dp=8, micro_batch=4)
FULL = Plan(
    dp=4, tp=2, zero=2, shard_group=2, recompute=Recompute.FULL, recompute_every=2, micro_batch=2
)


def flags(program, plan, workload=GPT2):
    return program_flags(program, plan, workload).text.replace(" \\\n", "\n").splitlines()


def missing(program, plan):
    return program_flags(program, plan, GPT2).missing


def test_megatron_of_a_plain_plan():
    assert flags("megatron", PLAIN) == [
        "--tensor-model-parallel-size 1",
        "--pipeline-model-parallel-size 1",
        "--context-parallel-size 1",
        "--micro-batch-size 4",
        "--global-batch-size 64",
        "--seq-length 1024",
        "--num-layers 12",
        "--hidden-size 768",
        "--num-attention-heads 12",
        "--kv-channels 64",
        "--vocab-size 50257",
        "--ffn-hidden-size 3072",
        "--max-position-embeddings 1024",
        "--overlap-grad-reduce",
        "--bf16",
    ]
    assert missing("megatron", PLAIN) == ()
    assert "--overlap-grad-reduce" not in flags("megatron", Plan(tp=8))


def test_megatron_of_a_full_plan():
    found = flags("megatron", FULL)
    for flag in (
        "--tensor-model-parallel-size 2",
        "--use-distributed-optimizer",
        "--num-distributed-optimizer-instances 2",
        "--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads",
        "--outer-dp-sharding-strategy no_shard",
        "--recompute-granularity full --recompute-method block",
        "--recompute-num-layers 6",
    ):
        assert flag in found
    assert len(missing("megatron", FULL)) == 1


def test_megatron_sharding_and_recomputation():
    def has(text, **plan):
        return any(text in flag for flag in flags("megatron", Plan(dp=8, **plan)))

    assert has("use-distributed-optimizer", zero=1)
    assert not has("megatron-fsdp", zero=1)
    assert has("strategy optim_grads_params", zero=3)
    assert not has("distributed-optimizer-instances", zero=3)
    assert not has("outer-dp", zero=3)
    assert has("--recompute-method uniform", recompute=Recompute.FULL)
    assert has("--recompute-num-layers 1", recompute=Recompute.FULL)
    assert not has("recompute")
    assert has("--exp-avg-dtype bf16", zero=1, optimizer_state=OptimizerState.BF16)
    assert has("--exp-avg-sq-dtype fp8", zero=1, optimizer_state=OptimizerState.EIGHT_BIT)


@pytest.mark.parametrize(
    ("plan", "count"),
    [
        (Plan(dp=2, pp=4, micro_batch=1, pipeline=PipelineSchedule.GPIPE), 1),
        (Plan(dp=2, pp=4, micro_batch=1), 0),
        (Plan(dp=1, pp=8, micro_batch=1), 1),  # 12 blocks on 8 stages
        (Plan(dp=8, optimizer_state=OptimizerState.BF16), 1),
        (Plan(dp=8, zero=1, optimizer_state=OptimizerState.BF16), 0),
    ],
)
def test_what_megatron_lacks(plan, count):
    assert len(missing("megatron", plan)) == count


def test_torchtitan_of_a_plain_and_a_full_plan():
    assert flags("torchtitan", PLAIN) == [
        "--training.local_batch_size 4",
        "--training.global_batch_size 64",
        "--training.seq_len 1024",
        "--training.mixed_precision_param bfloat16",
        "--parallelism.data_parallel_replicate_degree 8",
        "--parallelism.data_parallel_shard_degree 1",
        "--parallelism.tensor_parallel_degree 1",
        "--parallelism.pipeline_parallel_degree 1",
        "--parallelism.context_parallel_degree 1",
        "--activation_checkpoint.mode none",
    ]
    assert flags("torchtitan", FULL) == [
        "--training.local_batch_size 2",
        "--training.global_batch_size 32",
        "--training.seq_len 1024",
        "--training.mixed_precision_param bfloat16",
        "--parallelism.data_parallel_replicate_degree 2",
        "--parallelism.data_parallel_shard_degree 2",
        "--parallelism.tensor_parallel_degree 2",
        "--parallelism.pipeline_parallel_degree 1",
        "--parallelism.context_parallel_degree 1",
        "--activation_checkpoint.mode selective",
        "--activation_checkpoint.selective_ac_option 2",
        "--parallelism.fsdp_reshard_after_forward never",
    ]
    pipeline = flags("torchtitan", Plan(dp=2, pp=4, micro_batch=1))
    assert "--training.local_batch_size 8" in pipeline, "all micro-batches of a step"
    assert "--parallelism.pipeline_parallel_schedule 1F1B" in pipeline
    assert "--parallelism.pipeline_parallel_microbatch_size 1" in pipeline
    assert not any("layers_per_stage" in flag for flag in pipeline)


@pytest.mark.parametrize(("zero", "lacks"), [(0, 0), (1, 1), (2, 1), (3, 0)])
def test_torchtitan_always_shards_weights(zero, lacks):
    assert len(missing("torchtitan", Plan(dp=8, zero=zero))) == lacks
    kept = "--parallelism.fsdp_reshard_after_forward never"
    assert (kept in flags("torchtitan", Plan(dp=8, zero=zero))) == bool(lacks)


def deepspeed(plan, workload=GPT2):
    return json.loads(program_flags("deepspeed", plan, workload).text)


def test_deepspeed_of_a_plain_and_a_full_plan():
    assert deepspeed(PLAIN) == {
        "train_batch_size": 64,
        "train_micro_batch_size_per_gpu": 4,
        "gradient_accumulation_steps": 2,
        "zero_optimization": {"stage": 0, "overlap_comm": True},
        "bf16": {"enabled": True},
    }
    full = deepspeed(FULL)
    assert full["zero_optimization"] == {"stage": 2, "overlap_comm": True}
    assert full["tensor_parallel"] == {"autotp_size": 2}
    assert "bf16" not in deepspeed(PLAIN, Workload.of("gpt2", 8, 1024, "fp32", "adam"))


@pytest.mark.parametrize(
    ("plan", "count"),
    [
        (PLAIN, 0),
        (FULL, 2),  # shard groups, checkpointing
        (Plan(dp=4, zero=3, shard_group=2), 1),
        (Plan(dp=2, pp=4, micro_batch=1), 1),
        (Plan(dp=2, pp=2, micro_batch=1, interleave=2), 2),
        (Plan(dp=2, pp=4, micro_batch=1, zero=1), 1),
        (Plan(dp=2, pp=4, micro_batch=1, zero=2), 2),
        (Plan(dp=8, recompute=Recompute.FULL), 1),
        (Plan(dp=4, cp=2), 1),
    ],
)
def test_what_deepspeed_lacks(plan, count):
    assert len(missing("deepspeed", plan)) == count


def test_fsdp_of_a_plain_plan():
    assert program_flags("fsdp", Plan(dp=4, zero=3, micro_batch=2), GPT2).text == "\n".join(
        [
            "import torch",
            "from torch.distributed.device_mesh import init_device_mesh",
            "from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard",
            'mesh = init_device_mesh("cuda", [4], mesh_dim_names=["dp"])',
            'shards = mesh["dp"]',
            "policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)",
            "for block in model.layers.children():  # the repeated blocks of the model",
            "    fully_shard(block, mesh=shards, mp_policy=policy, reshard_after_forward=True)",
            "fully_shard(model, mesh=shards, mp_policy=policy, reshard_after_forward=True)",
            "# micro-batch 2, gradient accumulation steps 4",
        ]
    )
    replicated = flags("fsdp", PLAIN)
    assert "from torch.distributed._composable.replicate_with_fsdp import replicate" in replicated
    assert not any("fully_shard" in line or "parallelize" in line for line in replicated)


def test_fsdp_of_a_full_plan():
    lines = flags("fsdp", FULL)
    assert (
        'mesh = init_device_mesh("cuda", [2, 2, 2], mesh_dim_names=["copies", "dp", "tp"])' in lines
    )
    assert 'shards = mesh["copies", "dp"]' in lines
    assert '    parallelize_module(block, mesh["tp"], tensor_parallel_plan)' in lines
    assert "    if number % 2 == 0:  # one block in 2" in lines
    assert "        model.layers.register_module(name, checkpoint_wrapper(block))" in lines
    every = flags("fsdp", Plan(dp=8, zero=3, recompute=Recompute.FULL))
    assert "    model.layers.register_module(name, checkpoint_wrapper(block))" in every
    assert not any("number %" in line for line in every)
    context = flags("fsdp", Plan(dp=4, cp=2, zero=3))
    assert 'mesh["dp", "cp"]._flatten("dp_cp")' in context
    assert 'shards = mesh["dp_cp"]' in context


@pytest.mark.parametrize(
    ("plan", "count"),
    [
        (Plan(dp=8, zero=3), 0),
        (Plan(dp=8, zero=2), 1),
        (Plan(dp=2, pp=4, micro_batch=1), 1),
        (Plan(dp=4, cp=2, zero=3), 1),
        (Plan(dp=8, zero=3, optimizer_state=OptimizerState.BF16), 1),
    ],
)
def test_what_fsdp_lacks(plan, count):
    assert len(missing("fsdp", plan)) == count


def test_megatron_networks_of_llama_and_mixtral():
    """As published: Llama 3 (arXiv 2407.21783, table 3), Mixtral (arXiv 2401.04088, table 1)."""
    plan = Plan(dp=8, tp=8, zero=1, micro_batch=1)
    llama = flags("megatron", plan, Workload.of("llama3_8b", 8, 8192, "bf16", "adam"))
    for flag in (
        "--num-layers 32",
        "--hidden-size 4096",
        "--group-query-attention --num-query-groups 8",
        "--ffn-hidden-size 14336",
        "--vocab-size 128256",
        "--swiglu",
        "--normalization RMSNorm",
        "--disable-bias-linear",
        "--untie-embeddings-and-output-weights",
        "--max-position-embeddings 8192",
    ):
        assert flag in llama
    mixtral = flags("megatron", plan, Workload.of("mixtral_8x7b", 8, 4096, "bf16", "adam"))
    assert "--num-experts 8 --moe-router-topk 2" in mixtral
    other = Workload.of("resnet50", 8, None, "bf16", "momentum")
    assert any("network" in text for text in program_flags("megatron", PLAIN, other).missing)


def test_a_torchtitan_file_has_the_flags():
    plan = Plan(dp=4, tp=2, zero=3, sequence_parallel=True, tp_overlap=True)
    document = tomllib.loads(program_flags("torchtitan-toml", plan, GPT2).text)
    found = {
        f"--{table}.{key}" + ("" if value is True else f" {value}")
        for table, own in document.items()
        for key, value in own.items()
    }
    assert found == set(flags("torchtitan", plan))


def yaml_of(program, plan, workload, devices_per_node=8):
    return yaml.safe_load(program_flags(program, plan, workload, devices_per_node).text)


def test_accelerate_names_the_strategy_of_the_plan():
    sharded = yaml_of("accelerate", Plan(dp=16, zero=3, micro_batch=2), GPT2)
    assert sharded["distributed_type"] == "FSDP" and sharded["mixed_precision"] == "bf16"
    assert (sharded["num_machines"], sharded["num_processes"]) == (2, 16)
    assert sharded["fsdp_config"]["fsdp_reshard_after_forward"] is True
    assert "parallelism_config" not in sharded
    groups = yaml_of("accelerate", Plan(dp=16, tp=2, zero=3, shard_group=4), GPT2)
    assert groups["parallelism_config"] == {
        "parallelism_config_dp_replicate_size": 4,
        "parallelism_config_dp_shard_size": 4,
        "parallelism_config_cp_size": 1,
        "parallelism_config_tp_size": 2,
    }
    assert yaml_of("accelerate", Plan(dp=8, micro_batch=1), GPT2)["distributed_type"] == "MULTI_GPU"
    assert yaml_of("accelerate", Plan(), GPT2)["distributed_type"] == "NO"
    stage = yaml_of("accelerate", Plan(dp=8, zero=1, micro_batch=2), GPT2)
    assert stage["deepspeed_config"]["gradient_accumulation_steps"] == 4
    fp32 = Workload.of("gpt2", 8, 1024, "fp32", "adam")
    assert yaml_of("accelerate", Plan(dp=8), fp32)["mixed_precision"] == "no"
    assert len(program_flags("accelerate", Plan(pp=2, micro_batch=1), GPT2).missing) == 1


def test_trl_fine_tunes_adapters():
    workload = pl.predict("llama2_7b", device="rtx4090", qlora=True, batch=4, seq=512).workload
    plan = Plan(micro_batch=1, recompute=Recompute.FULL, optimizer_state=OptimizerState.EIGHT_BIT)
    assert yaml_of("trl", plan, workload, 1) == {
        "accelerate_config": "single_gpu",
        "num_processes": 1,
        "num_machines": 1,
        "per_device_train_batch_size": 1,
        "gradient_accumulation_steps": 4,
        "max_length": 512,
        "bf16": True,
        "fp16": False,
        "gradient_checkpointing": True,
        "optim": "adamw_8bit",
        "use_peft": True,
        "lora_r": 16,
        "lora_target_modules": "all-linear",
        "load_in_4bit": True,
    }


def test_a_slurm_script_starts_one_torchrun_per_node():
    text = program_flags("slurm", Plan(dp=16), GPT2, 8).text
    assert text.startswith("#!/bin/bash\n#SBATCH --job-name=gpt2\n#SBATCH --nodes=2\n")
    assert "#SBATCH --gpus-per-node=8\n" in text
    assert "--nnodes=2 --nproc-per-node=8" in text and text.endswith('"$@"')
