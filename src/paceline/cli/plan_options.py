"""Options of predictions: workload, topology and parallelism plan.

Parameters have the names of the keywords of `paceline.predict`, so that commands pass them on.
"""

import click

from paceline.cli.help_sections import together
from paceline.cli.options import FiniteRange, IntegerRange, seq_option

_COUNT = IntegerRange(min=1)
optimiser_state_option = click.option(
    "--optimiser-state",
    type=click.Choice(["fp32", "bf16", "8bit"]),
    default="fp32",
    show_default=True,
    help="Precision of the optimiser state.",
)
emit_option = click.option(
    "--emit",
    type=click.Choice(["torchtitan", "megatron", "deepspeed", "fsdp"]),
    help="Print the plan as flags or settings of a training program.",
)
workload_options = together(
    click.option(
        "--model",
        metavar="MODEL",
        help="Built-in model ('paceline models'), FILE.py:FUNCTION, FILE.onnx or config.json.",
    ),
    click.option(
        "--trace",
        metavar="FILE|NAME",
        help="Measured layer times to replay: a CSV file or the built-in googlenet_k80.",
    ),
    click.option(
        "--input",
        "inputs",
        metavar="SHAPE",
        multiple=True,
        help="Input shape of a model file, such as 32x3x224x224; repeatable.",
    ),
    click.option(
        "--batch",
        type=int,
        help="Samples per replica and step [default: 32; 1 per device above 1B parameters].",
    ),
    click.option(
        "--global-batch", type=_COUNT, help="Samples per step over all replicas; replaces --batch."
    ),
    seq_option,
    click.option(
        "--precision",
        metavar="NAME",
        help="Numeric precision, such as amp_fp16 [default: that of config.json, else bf16 if the "
        "device supports it, else fp32].",
    ),
    click.option(
        "--lora", type=_COUNT, help="Freeze the weights; train LoRA adapters of this rank."
    ),
    click.option(
        "--qlora", is_flag=True, help="Like --lora, with 4-bit frozen weights [default rank: 16]."
    ),
    click.option(
        "--optimiser",
        metavar="NAME",
        help="Optimiser: sgd, momentum or adam [default: adam for sequence models].",
    ),
    section="Workload",
)
"""Model, batch, precision and optimiser."""
cluster_options = together(
    click.option(
        "--cluster",
        metavar="NAME|FILE",
        help="Cluster: a name from 'paceline hardware clusters' or a TOML file.",
    ),
    click.option(
        "--device", metavar="NAME", help="Device type, such as a100_sxm_80gb; replaces --cluster."
    ),
    click.option(
        "--link",
        metavar="NAME|BANDWIDTH",
        help="Network between nodes, such as ib_edr_100g or 400gbit [default: the cluster's].",
    ),
    click.option(
        "--cards",
        type=IntegerRange(1, 1000),
        help="NICs per node [default: the cluster's].",
    ),
    click.option(
        "--scale",
        metavar="NAME=FACTOR[,...]",
        help="Scale hardware rates, such as flops=2,memory=1.5,link=0.5.",
    ),
    click.option(
        "--intra-link", metavar="NAME", help="Link inside a node [default: the cluster's]."
    ),
    click.option(
        "-j",
        "topologies",
        metavar="NODESxGPUS[,...]",
        help="Nodes x GPUs per node; comma-separated [default: the whole cluster].",
    ),
    click.option(
        "--nodes", metavar="N[,N]|N..N", help="Number of whole nodes, such as 4,8 or 1..16."
    ),
    section="Cluster",
)
"""Cluster and topology."""
_plan_options = together(  # None means "not given": `paceline.spec.defaults` chooses
    click.option(
        "--dp", type=_COUNT, help="Data-parallel degree [default: the remaining devices]."
    ),
    click.option("--tp", type=_COUNT, help="Tensor-parallel degree."),
    click.option("--pp", type=_COUNT, help="Pipeline-parallel degree (stages)."),
    click.option("--cp", type=_COUNT, help="Context-parallel degree."),
    click.option(
        "--cp-form",
        "context_form",
        type=click.Choice(["ring", "ring_in_order", "gather", "ulysses"]),
        help="Context-parallel implementation [default: that of the framework].",
    ),
    click.option("--ep", type=_COUNT, help="Expert-parallel degree."),
    click.option(
        "--expert-imbalance",
        type=FiniteRange(1.0, 1e6),
        help="Maximum over mean load of expert-parallel devices, such as 1.2 [default: a prior].",
    ),
    click.option("--zero", type=IntegerRange(0, 3), help="ZeRO stage (3: FSDP)."),
    click.option(
        "--shard-group",
        type=IntegerRange(min=2),
        help="Devices per shard group; groups are replicas of each other (HSDP) [default: all].",
    ),
    optimiser_state_option,
    click.option(
        "--micro-batch",
        type=_COUNT,
        help="Samples per micro-batch [default: the whole batch; 1 if --pp > 1].",
    ),
    click.option("--micro-batches", type=_COUNT, help="Micro-batches per step."),
    click.option(
        "--offload",
        metavar="STATE[,STATE]",
        help="State to offload to host memory: optimiser, activations.",
    ),
    click.option(
        "--interleave", type=_COUNT, help="Model chunks per pipeline stage (virtual stages)."
    ),
    click.option(
        "--pipeline",
        type=click.Choice(["1f1b", "gpipe", "zero-bubble", "zb-v", "dualpipe"]),
        help="Pipeline schedule [default: 1f1b].",
    ),
    click.option(
        "--stage-layers", metavar="N[,N]", help="Blocks per pipeline chunk; comma-separated."
    ),
    click.option(
        "--recompute",
        metavar="POLICY",
        help="Activation recomputation: none, selective, op, full or every:2 (every second block).",
    ),
    click.option(
        "--sequence-parallel/--whole-sequences",
        default=None,
        help="Shard the sequence over tensor-parallel ranks [default: as the framework does].",
    ),
    click.option(
        "--tp-overlap", is_flag=True, help="Overlap tensor-parallel communication with GEMMs."
    ),
    click.option(
        "--unfused-attention",
        "fused_attention",
        is_flag=True,
        flag_value=False,
        default=True,
        help="Use unfused attention, which writes its scores to memory.",
    ),
    click.option(
        "--framework",
        metavar="NAME",
        help="Framework profile, such as horovod-torch [default: DDP; FSDP or Megatron-LM if the "
        "plan requires it].",
    ),
    click.option(
        "--overlap",
        metavar="POLICY",
        help="Gradient synchronisation: none, per_tensor, bucketed, merged, one_message, split, "
        "...",
    ),
    click.option("--bucket", metavar="BYTES", help="Bucket size, such as 25MiB."),
    click.option(
        "--compression",
        metavar="METHOD",
        help="Gradient compression: none, fp16, top_k or top_k:0.01.",
    ),
    section="Parallelism plan",
)
tuning_option = click.option(
    "--tuning",
    type=click.Choice(["plain", "reference", "tuned"]),
    help="Tuning of the training program: a plain script, a maintained reference implementation, "
    "or a tuned record run.  [default: tuned for decoders under Megatron-LM and NeMo; otherwise "
    "unknown, which widens the interval]",
)
_measured_options = together(
    click.option(
        "--measured-step",
        metavar="DURATION",
        help="Measured step time of a single device, such as 253ms.",
    ),
    click.option(
        "--curve",
        type=click.Path(exists=True, dir_okay=False),
        help="Measured all-reduce time by size: a file of 'probe --out', nccl-tests or OSU.",
    ),
    click.option(
        "--input-time",
        metavar="DURATION",
        help="Time to load and preprocess a batch, such as 20ms [default: hidden by compute].",
    ),
    tuning_option,
    click.option(
        "--jitter",
        type=FiniteRange(0.0, 10.0),
        help="Coefficient of variation of compute times across workers, such as 0.02.",
    ),
    section="Measurements",
)
training_options = together(
    click.option(
        "--tokens", metavar="COUNT", help="Tokens of a complete training run, such as 15T."
    ),
    click.option("--epochs", metavar="COUNT", help="Epochs of a complete training run."),
    click.option(
        "--samples-per-epoch",
        metavar="COUNT",
        help="Samples per epoch, such as 1.28M [default: ImageNet-1k].",
    ),
    click.option(
        "--price", type=float, help="Price of a device per hour [default: the cluster's]."
    ),
    click.option(
        "--mtbf",
        metavar="DURATION",
        help="Mean device time between failures, such as 30000h [default: a prior].",
    ),
    click.option(
        "--checkpoint-time",
        metavar="DURATION",
        help="Time to write a checkpoint, such as 60s [default: a prior].",
    ),
    click.option(
        "--restart-time",
        metavar="DURATION",
        help="Time to restart after a failure, such as 10min [default: a prior].",
    ),
    click.option(
        "--checkpoint-every",
        metavar="DURATION",
        help="Interval between checkpoints [default: the optimum].",
    ),
    click.option("--no-failures", is_flag=True, help="Ignore failures and checkpoints."),
    section="Training run",
)
"""Length, price and failures of a complete training run."""

job_options = together(workload_options, cluster_options, _plan_options, _measured_options)
"""Workload, cluster, plan and measurements of a prediction."""
