"""The grammar of predictions on the command line: a workload, a place, a plan.

Parameters are called as the keywords of `paceline.predict`, so that a command passes them on.
"""

import click

from paceline.cli.options import FiniteRange, seq_option, together

_COUNT = click.IntRange(min=1)
optimiser_state_option = click.option(
    "--optimiser-state",
    type=click.Choice(["fp32", "bf16", "8bit"]),
    default="fp32",
    show_default=True,
    help="Width of the optimiser's momenta.",
)
emit_option = click.option(
    "--emit",
    type=click.Choice(["torchtitan", "megatron", "deepspeed", "fsdp"]),
    help="Write the plan in the flags or settings of a program.",
)
workload_options = together(
    click.option(
        "--model",
        help="A network ('paceline models'), FILE.py:FUNCTION, FILE.onnx or config.json.",
    ),
    click.option(
        "--trace",
        help="Layer times to replay, with or without --model: a CSV file or googlenet_k80.",
    ),
    click.option(
        "--input", "inputs", multiple=True, help="Shape of a file's input, as in 32x3x224x224."
    ),
    click.option("--batch", type=int, help="Samples per replica and step [default: 32]."),
    click.option("--global-batch", type=_COUNT, help="Samples per step of all replicas, instead."),
    seq_option,
    click.option(
        "--precision",
        default="fp32",
        show_default=True,
        help="Width of numbers, as in amp_fp16, bf16.",
    ),
    click.option(
        "--lora", type=_COUNT, help="Weights are frozen; adapters of this rank are trained."
    ),
    click.option(
        "--qlora", is_flag=True, help="As --lora (16 unless given), frozen weights in 4 bits."
    ),
    click.option("--optimiser", help="sgd, momentum, adam [default: adam for sequences]."),
)
"""What is trained."""
place_options = together(
    click.option("--cluster", help="A name of 'paceline hardware clusters', or FILE.toml."),
    click.option("--device", help="Instead of a cluster: devices of one kind."),
    click.option(
        "--link", help="Network between nodes, in place of the cluster's: a name, or 400gbit."
    ),
    click.option(
        "--cards",
        type=click.IntRange(1, 1000),
        help="Network cards of a node [default: the cluster's].",
    ),
    click.option("--scale", help="Parts so many times as fast, as in flops=2,memory=1.5,link=0.5."),
    click.option("--intra-link", help="Links inside a node, in place of the cluster's."),
    click.option("-j", "places", help="NODESxPROCESSES, several by commas [default: all]."),
    click.option("--nodes", help="Instead of -j: whole nodes, as in 4,8 or 1..16."),
)
"""Where it is trained."""
_plan_options = together(
    click.option("--dp", type=_COUNT, help="Data-parallel replicas [default: what is left]."),
    click.option("--tp", type=_COUNT, default=1, help="Tensor-parallel degree."),
    click.option("--pp", type=_COUNT, default=1, help="Pipeline stages."),
    click.option("--cp", type=_COUNT, default=1, help="Context-parallel degree."),
    click.option(
        "--cp-form",
        "context_form",
        type=click.Choice(["ring", "ring_in_order", "gather", "ulysses"]),
        help="How --cp exchanges tokens [default: as the framework does].",
    ),
    click.option("--ep", type=_COUNT, default=1, help="Expert-parallel degree."),
    click.option(
        "--expert-imbalance",
        type=FiniteRange(1.0, 1e6),
        help="Load of the busiest --ep device over the mean, as in 1.2 [default: a prior].",
    ),
    click.option("--zero", type=click.IntRange(0, 3), default=0, help="Stage of sharding, 0 to 3."),
    click.option(
        "--shard-group",
        type=click.IntRange(min=2),
        help="Devices that share what is sharded; other groups hold copies (HSDP) [default: all].",
    ),
    optimiser_state_option,
    click.option(
        "--micro-batch", type=_COUNT, help="Samples per micro-batch [default: all; with --pp 1]."
    ),
    click.option("--micro-batches", type=_COUNT, help="Micro-batches per step."),
    click.option(
        "--offload",
        help="What leaves the device for its host: optimiser, activations, or both by a comma.",
    ),
    click.option("--interleave", type=_COUNT, default=1, help="Pipeline chunks per stage."),
    click.option(
        "--pipeline",
        type=click.Choice(["1f1b", "gpipe", "zero-bubble", "zb-v", "dualpipe"]),
        default="1f1b",
        help="Order of micro-batches in the pipeline.",
    ),
    click.option("--stage-layers", help="Blocks of each pipeline chunk, by commas."),
    click.option(
        "--recompute",
        default="none",
        show_default=True,
        help="Activations computed again, not kept: none, selective, op, full, every:2 (blocks).",
    ),
    click.option(
        "--sequence-parallel/--whole-sequences",
        default=None,
        help="Divide tokens between tensor-parallel ranks; by default as the framework does.",
    ),
    click.option("--tp-overlap", is_flag=True, help="Tensor-parallel messages run under products."),
    click.option(
        "--unfused-attention",
        "fused_attention",
        is_flag=True,
        flag_value=False,
        default=True,
        help="Attention writes its scores to memory.",
    ),
    click.option("--framework", help="A profile, as in horovod-torch [default: torch-ddp]."),
    click.option(
        "--overlap",
        help="When gradients travel: none, per_tensor, bucketed, merged, one_message, split, ...",
    ),
    click.option("--bucket", help="Size of a bucket or piece, as in 25MiB."),
    click.option("--compression", help="Of gradients: none, fp16, top_k or top_k:0.01."),
)
_measured_options = together(
    click.option("--measured-step", help="A measured step of one device alone, as in 253ms."),
    click.option(
        "--curve",
        type=click.Path(exists=True, dir_okay=False),
        help="All-reduce by size: a file of 'probe --out', a log of nccl-tests or OSU.",
    ),
    click.option("--input-time", help="Reading and preparing a batch, as in 20ms."),
    click.option(
        "--tuning",
        type=click.Choice(["plain", "reference", "tuned"]),
        help="How well the program is tuned: a script as it comes, a maintained implementation, "
        "a record run.  [default: unknown, part of the interval]",
    ),
    click.option(
        "--jitter",
        type=FiniteRange(0.0, 10.0),
        help="Coefficient of variation of workers' times, as in 0.02.",
    ),
)
training_options = together(
    click.option("--tokens", help="A whole training on so many tokens, as in 15T."),
    click.option("--epochs", help="Or of so many epochs, as in 90."),
    click.option(
        "--samples-per-epoch", help="Samples of an epoch, as in 1.28M [default: ImageNet-1k's]."
    ),
    click.option(
        "--price", type=float, help="Price of a device and hour, in place of the cluster's."
    ),
    click.option("--mtbf", help="Device-time between failures, as in 30000h [default: assumed]."),
    click.option("--checkpoint-time", help="Of one checkpoint, as in 60s [default: assumed]."),
    click.option("--restart-time", help="After a failure, as in 10min [default: assumed]."),
    click.option("--checkpoint-every", help="Training between checkpoints [default: the best]."),
    click.option("--no-failures", is_flag=True, help="Count no failures and no checkpoints."),
)
"""How much is trained, and what is known of running it."""

job_options = together(workload_options, place_options, _plan_options, _measured_options)
"""What is trained, where, how it is spread, and what was measured of it."""
