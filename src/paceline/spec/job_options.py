"""Knobs of predictions: workload, cluster, plan, measurements and training program.

Every field is a keyword of `paceline.predict` and an option of ``paceline predict``. This module
imports no numeric library, because ``paceline predict --help`` reads it.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict, TypeVar, Union

from paceline.predictor.plan.plan_choices import (
    ContextForm,
    ExpertDispatch,
    LossKernel,
    OptimizerState,
    PipelineSchedule,
)
from paceline.spec.knob import Knob
from paceline.topology import MOST_PROCESSES, check_topology
from paceline.units import parse_batch, parse_bytes, parse_scale, parse_seconds, parse_share

if TYPE_CHECKING:
    from paceline.hardware import Cluster
    from paceline.measurement.probe.allreduce_curves import CollectiveCurve
    from paceline.predictor.comm.compression import Compression
    from paceline.predictor.plan.sync_policy import Synchronisation
    from paceline.spec.resolve_model import Model
    from paceline.step.layer_trace import LayerTrace

T = TypeVar("T")
Many = Union[T, Sequence[T]]  # noqa: UP007  (mypy rejects T | ... as an alias)

LARGEST_COUNT = 65_536
EMITTED = (
    *("torchtitan", "torchtitan-toml", "megatron", "deepspeed", "fsdp"),
    *("accelerate", "trl", "slurm"),
)
"""Training programs whose flags or settings can be printed."""
LARGEST_BATCH = 10**9
_workload = partial(Knob, group="Workload")
_cluster = partial(Knob, group="Cluster")
_plan = partial(Knob, group="Parallelism plan")
_degree = partial(_plan, low=1, high=LARGEST_COUNT)
_measured = partial(Knob, group="Measurements")
_output = partial(Knob, group="Output")

MODEL = _workload(
    "Built-in model ('paceline catalog models'), FILE.py:FUNCTION, FILE.onnx or config.json.",
    metavar="MODEL[,...]",
    several=True,
)
BATCH = _workload(
    "Samples per replica and step.",
    metavar="N[,...]",
    low=1,
    high=LARGEST_BATCH,
    default="32, or less to fit; --global-batch above 1B parameters",
    several=True,
)
GLOBAL_BATCH = _workload(
    "Samples per step over all replicas, or tokens such as 4Mtok; replaces --batch.",
    metavar="N|TOKENS[,...]",
    low=1,
    high=LARGEST_BATCH,
    parse=parse_batch,
    default="by model size above 1B parameters",
    several=True,
)
SEQ = _workload(
    "Sequence length in tokens.",
    metavar="N[,...]",
    low=1,
    high=LARGEST_BATCH,
    default="the published one",
    several=True,
)
PRECISION = _workload(
    "Numeric precision, such as amp_fp16.",
    metavar="NAME[,...]",
    default="that of config.json, else bf16 if the device supports it, else fp32 (amp_fp16 "
    "above 1B parameters)",
    several=True,
)
INPUT = _workload(
    "Input shape of a model file, batch first, such as 32x3x224x224; repeatable.",
    metavar="SHAPE",
    repeated=True,
    formerly="inputs",
)
CLUSTER = _cluster(
    "Cluster: a name from 'paceline catalog clusters' or a TOML file.",
    metavar="NAME|FILE[,...]",
    several=True,
)
DEVICE = _cluster(
    "Device type, such as a100_sxm_80gb; replaces --cluster.", metavar="NAME[,...]", several=True
)
LINK = _cluster(
    "Network between nodes, such as ib_edr_100g or 400gbit (per NIC).",
    metavar="NAME|BANDWIDTH[,...]",
    default="the cluster's",
    several=True,
)
TOPOLOGY = _cluster(
    "Nodes x GPUs per node.",
    option="-j",
    metavar="NODESxGPUS[,...]",
    parse=check_topology,
    default="the whole cluster",
    several=True,
)
NODES = _cluster(
    "Number of whole nodes, such as 4,8 or 1..16.",
    metavar="N[,...]|N..N",
    low=1,
    high=MOST_PROCESSES,
    several=True,
)
FRAMEWORK = _plan(
    "Framework profile, such as horovod-torch.",
    metavar="NAME[,...]",
    default="DDP; FSDP or Megatron-LM if the plan requires it",
    several=True,
)

ZERO = _plan("ZeRO stage (3: FSDP).", low=0, high=3)


class VariedOptions(TypedDict, total=False):
    """Knobs that may be lists: one prediction for each combination of their values."""

    batch: Annotated[int | None, BATCH]
    global_batch: Annotated[int | str | None, GLOBAL_BATCH]
    seq: Annotated[int | None, SEQ]
    precision: Annotated[str | None, PRECISION]
    device: Annotated[str | None, DEVICE]
    link: Annotated[str | None, LINK]
    nodes: Annotated[int | None, NODES]
    topology: Annotated[str | None, TOPOLOGY]
    framework: Annotated[str | None, FRAMEWORK]


class VariedLists(TypedDict, total=False):
    """The knobs of `VariedOptions` with several values."""

    batch: Annotated[Many[int] | None, BATCH]
    global_batch: Annotated[Many[int | str] | None, GLOBAL_BATCH]
    seq: Annotated[Many[int] | None, SEQ]
    precision: Annotated[Many[str] | None, PRECISION]
    device: Annotated[Many[str] | None, DEVICE]
    link: Annotated[Many[str] | None, LINK]
    nodes: Annotated[Many[int] | None, NODES]
    topology: Annotated[Many[str] | None, TOPOLOGY]
    framework: Annotated[Many[str] | None, FRAMEWORK]


class WorkloadOptions(TypedDict, total=False):
    """The workload."""

    input: Annotated[str | Sequence[str] | None, INPUT]
    lora: Annotated[
        int | None,
        _workload("Rank of LoRA adapters; the weights are frozen.", low=1, high=65_536),
    ]
    qlora: Annotated[
        bool | None, _workload("QLoRA: adapters on frozen 4-bit weights [default rank: 16].")
    ]
    fit: Annotated[
        str | None,
        _workload(
            "Use the largest batch (samples per device) or sequence that likely fits in memory.",
            choices=("batch", "seq"),
        ),
    ]
    optimizer: Annotated[
        str | None,
        _workload(
            "Optimizer: sgd, momentum or adam.",
            metavar="NAME",
            default="adam for sequence models",
            formerly="optimiser",
        ),
    ]


class TopologyOptions(TypedDict, total=False):
    """The cluster."""

    intra_link: Annotated[
        str | None, _cluster("Link inside a node.", metavar="NAME", default="the cluster's")
    ]
    nics: Annotated[
        int | None,
        _cluster("NICs per node.", low=1, high=1000, default="the cluster's", formerly="cards"),
    ]
    processes: Annotated[
        int | None,
        _cluster("Devices to use on each node.", low=1, high=LARGEST_COUNT, default="all"),
    ]
    scale: Annotated[
        str | Mapping[str, float] | None,
        _cluster(
            "Scale hardware rates, such as flops=2,memory=1.5,link=0.5.",
            metavar="NAME=FACTOR[,...]",
            parse=parse_scale,
        ),
    ]


class OverlapOptions(TypedDict, total=False):
    """The synchronisation of gradients."""

    overlap: Annotated[
        "str | Synchronisation | None",
        _plan(
            "Gradient synchronisation: none, per_tensor, bucketed, fused, merged, one_message, "
            "split or priority.",
            metavar="POLICY",
        ),
    ]
    bucket: Annotated[
        str | float | None,
        _plan("Bucket size, such as 25MiB.", metavar="BYTES", parse=parse_bytes, low=1),
    ]


class PlanOptions(TypedDict, total=False):
    """The parallelism plan; `paceline.spec.defaults` completes it."""

    dp: Annotated[int | None, _degree("Data-parallel degree.", default="the remaining devices")]
    tp: Annotated[int, _degree("Tensor-parallel degree.")]
    pp: Annotated[int, _degree("Pipeline-parallel degree (stages).")]
    cp: Annotated[int, _degree("Context-parallel degree.")]
    cp_impl: Annotated[
        str | None,
        _plan(
            "Context-parallel implementation.",
            choices=ContextForm,
            formerly="context_form",
            default="that of the framework",
        ),
    ]
    ep: Annotated[int, _degree("Expert-parallel degree.")]
    etp: Annotated[
        int | None,
        _degree(
            "Tensor-parallel degree of experts.",
            default="1 with --ep and sequence parallelism, else --tp",
        ),
    ]
    ep_impl: Annotated[
        str | None,
        _plan(
            "How tokens are sent to experts: a copy per expert, or one per node (DeepEP).",
            choices=ExpertDispatch,
            default="all_to_all",
        ),
    ]
    ep_overlap: Annotated[
        bool | None,
        _plan("Overlap the all-to-all of experts with computing of another micro-batch."),
    ]
    expert_imbalance: Annotated[
        float | None,
        _plan(
            "Maximum over mean load of expert-parallel devices, such as 1.2.",
            low=1,
            high=1e6,
            default="a prior",
        ),
    ]
    zero: Annotated[int, ZERO]
    shard_group: Annotated[
        int | None,
        _plan(
            "Devices per shard group; groups are replicas of each other (HSDP).",
            low=2,
            high=LARGEST_COUNT,
            default="all",
        ),
    ]
    optimizer_state: Annotated[
        str | None,
        _plan(
            "Precision of the optimizer state.",
            choices=OptimizerState,
            default="fp32",
            formerly="optimiser_state",
        ),
    ]
    micro_batch: Annotated[
        int | None,
        _degree("Samples per micro-batch.", default="the whole batch; 1 if --pp > 1"),
    ]
    micro_batches: Annotated[int | None, _plan("Micro-batches per step.", low=1, high=20_000)]
    offload: Annotated[
        str | Sequence[str] | None,
        _plan(
            "State to offload to host memory: optimizer, activations, weights (--zero 3).",
            metavar="STATE[,STATE]",
        ),
    ]
    interleave: Annotated[int, _degree("Model chunks per pipeline stage (virtual stages).")]
    pipeline: Annotated[
        str | None, _plan("Pipeline schedule.", choices=PipelineSchedule, default="1f1b")
    ]
    stage_layers: Annotated[
        str | Sequence[int] | None, _plan("Blocks per pipeline chunk.", metavar="N[,N]")
    ]
    recompute: Annotated[
        str | None,
        _plan(
            "Activation recomputation: none, selective, op, full, every:2 or modules (core_attn, "
            "layernorm, mlp, moe, ...).",
            metavar="POLICY|MODULE[,MODULE]",
        ),
    ]
    loss_kernel: Annotated[
        str | None,
        _plan(
            "Cross-entropy kernel: chunked keeps part of the scores in memory, fused one copy.",
            choices=LossKernel,
            default="that of the framework",
            also="--loss",
        ),
    ]
    sequence_parallel: Annotated[
        bool | None,
        _plan("Shard the sequence over tensor-parallel ranks.", default="as the framework does"),
    ]
    tp_overlap: Annotated[bool | None, _plan("Overlap tensor-parallel communication with GEMMs.")]
    fused_attention: Annotated[
        bool | None,
        _plan(
            "Fused attention kernels; without them, attention writes its scores to memory.",
            negative=True,
        ),
    ]
    compression: Annotated[
        "str | Compression | None",
        _plan("Gradient compression: none, fp16, top_k or top_k:0.01.", metavar="METHOD"),
    ]


class MeasuredOptions(TypedDict, total=False):
    """Measurements of the job, and its program."""

    measured_step: Annotated[
        str | float | None,
        _measured(
            "Measured step time, such as 253ms, of one device or of the topology in --measured-on.",
            metavar="DURATION",
            parse=parse_seconds,
        ),
    ]
    measured_on: Annotated[
        str | None,
        _measured(
            "Nodes x GPUs of the measured step: same plan, fewer replicas, such as 1x8.",
            metavar="NODESxGPUS",
            parse=check_topology,
            default="one device; those of the log",
        ),
    ]
    trace: Annotated[
        "str | Path | LayerTrace | None",
        _measured(
            "Measured layer times to replay: a CSV file or the built-in googlenet_k80.",
            metavar="FILE|NAME",
        ),
    ]
    allreduce_curve: Annotated[
        "str | Path | CollectiveCurve | None",
        _measured(
            "Measured all-reduce time by size: a file of 'calibrate --out', nccl-tests or OSU.",
            metavar="FILE",
            formerly="curve",
        ),
    ]
    input_time: Annotated[
        str | float | None,
        _measured(
            "Time to load and preprocess a batch, such as 20ms.",
            metavar="DURATION",
            parse=parse_seconds,
            default="hidden by compute",
        ),
    ]
    tuning: Annotated[
        str | None,
        _measured(
            "Tuning of the training program: a plain script, a maintained reference "
            "implementation, or a tuned record run.",
            choices=("plain", "reference", "tuned"),
            default="tuned for decoders under Megatron-LM and NeMo; otherwise unknown, which "
            "widens the interval",
        ),
    ]
    jitter: Annotated[
        float | None,
        _measured(
            "Coefficient of variation of compute times across workers, such as 0.02.",
            low=0,
            high=10,
        ),
    ]


class EvidenceOptions(TypedDict, total=False):
    """Measurements in files and in the store."""

    evidence: Annotated[
        str | None,
        _measured(
            "Log or trace of a run of the job on --measured-on, or a study.", metavar="FILE|STUDY"
        ),
    ]


class EmitOptions(TypedDict, total=False):
    """How a plan is printed."""

    emit: Annotated[
        str | None,
        _output(
            "Print the plan as flags or settings of a training program, or as a Slurm script.",
            choices=EMITTED,
        ),
    ]


class EfficiencyOptions(TypedDict, total=False):
    """The goal of `paceline.bandwidth_for`."""

    target_efficiency: Annotated[
        str | float | None,
        _output(
            "Report the bandwidth required for this scaling efficiency, such as 90%.",
            metavar="PERCENT",
            parse=parse_share,
        ),
    ]


class FixedOptions(
    WorkloadOptions, TopologyOptions, PlanOptions, OverlapOptions, MeasuredOptions, total=False
):
    """Knobs with one value per call."""


class JobOptions(VariedOptions, FixedOptions, total=False):
    """The keywords of one prediction."""


class JobLists(VariedLists, FixedOptions, total=False):
    """The keywords of several predictions."""


class LocalOptions(TypedDict, total=False):
    """The keywords of a prediction for this machine, which identify launches."""

    batch: Annotated[int | None, BATCH]
    seq: Annotated[int | None, SEQ]
    precision: Annotated[str | None, PRECISION]
    input: Annotated[str | Sequence[str] | None, INPUT]
    link: Annotated[str | None, LINK]
    framework: Annotated[str | None, FRAMEWORK]


class Target(TypedDict, total=False):
    """The positional arguments of `paceline.predict`."""

    model: Annotated["Many[Model] | None", MODEL]
    cluster: Annotated["Many[str | Path | Cluster] | None", CLUSTER]


class JobArguments(Target, JobLists, total=False):
    """The options of a prediction on the command line."""
