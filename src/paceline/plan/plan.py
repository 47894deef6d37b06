"""Plan: how a workload is spread over devices."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from paceline.errors import InputError
from paceline.plan.choices import ContextForm, Offload
from paceline.plan.compression import NO_COMPRESSION, Compression
from paceline.plan.synchronisation import Synchronisation


class Recompute(StrEnum):
    """Which activations are computed again in backward instead of being kept."""

    NONE = "none"
    SELECTIVE = "selective"
    """The scores and softmax of attention, which are large and cheap."""
    FULL = "full"
    """Everything but the input of each block."""
    OPERATION = "op"
    """In each block all but attention and the outputs of every second linear layer."""


SEARCHED_RECOMPUTATIONS = (Recompute.NONE, Recompute.SELECTIVE, Recompute.FULL)
"""Those that searches try."""


class OptimiserState(StrEnum):
    """How the optimiser keeps its momenta; master copies of weights stay as they are."""

    FP32 = "fp32"
    BF16 = "bf16"
    EIGHT_BIT = "8bit"
    """Blocks of 8-bit numbers, each block with a scale in 32 bits."""


class PipelineSchedule(StrEnum):
    """The order in which a pipeline stage works through micro-batches."""

    GPIPE = "gpipe"
    """All forwards, then all backwards."""
    ONE_F_ONE_B = "1f1b"
    """One forward, one backward in the steady state; interleaved with several chunks."""
    ZERO_BUBBLE = "zero-bubble"
    """1F1B whose gradients of weights are computed later, where it would be idle (ZB-H1)."""
    ZB_V = "zb-v"
    """The same with two chunks per stage, the second on the way back (ZB-V)."""
    DUALPIPE = "dualpipe"
    """As zb-v, messages within a stage running under passes of other micro-batches (DualPipeV)."""

    @property
    def splits_backward(self) -> bool:
        """Whether gradients of inputs and of weights are passes of their own."""
        return self in (self.ZERO_BUBBLE, self.ZB_V, self.DUALPIPE)

    @property
    def is_v(self) -> bool:
        """Whether the first stage holds the first and the last chunk."""
        return self in (self.ZB_V, self.DUALPIPE)

    @property
    def chunks_of_stage(self) -> int:
        """Chunks per stage of a schedule that splits backward."""
        return 2 if self.is_v else 1


@dataclass(frozen=True)
class Plan:
    """Degrees of parallelism and policies. The degrees multiply to the number of devices.

    ``dp`` replicas, each of ``tp`` x ``pp`` x ``cp`` devices: tensor (or filter), pipeline and
    context parallel. ``ep`` devices of the ``dp`` x ``cp`` ones share out experts. ``zero`` is
    the stage of sharded data parallelism (1 optimiser state, 2 gradients too, 3 weights too).
    ``shard_group`` neighbours share out what is sharded, and groups hold copies of each other
    (HSDP); None for one group of all ``dp`` x ``cp``. ``optimiser_state`` is the width of momenta.
    Full recomputation is of one block in ``recompute_every``. ``context_form`` None is as the
    framework does it. ``expert_imbalance`` is the load of the busiest expert-parallel device over
    the mean; None for a prior, whose width the interval has. ``offload`` leaves the device for its
    host. ``tp_overlap`` cuts products so that tensor-parallel messages run under them.
    ``micro_batch`` samples go through at a time, ``micro_batches`` times per step; what is not
    given follows from the batch. Each pipeline stage holds ``interleave`` chunks;
    ``stage_layers`` gives the number of blocks of each chunk when they are uneven. Without
    ``fused_attention`` the scores of attention are written to memory and dropped out, which is
    what selective recomputation saves. None leaves synchronisation to the framework.
    """

    dp: int = 1
    tp: int = 1
    pp: int = 1
    cp: int = 1
    ep: int = 1
    zero: int = 0
    micro_batch: int | None = None
    micro_batches: int | None = None
    interleave: int = 1
    pipeline: PipelineSchedule = PipelineSchedule.ONE_F_ONE_B
    stage_layers: tuple[int, ...] = ()
    recompute: Recompute = Recompute.NONE
    sequence_parallel: bool = False
    fused_attention: bool = True
    synchronisation: Synchronisation | None = None
    compression: Compression = NO_COMPRESSION
    framework: str | None = None
    shard_group: int | None = None
    optimiser_state: OptimiserState = OptimiserState.FP32
    recompute_every: int = 1
    context_form: ContextForm | None = None
    expert_imbalance: float | None = None
    offload: tuple[Offload, ...] = ()
    tp_overlap: bool = False

    def __post_init__(self) -> None:
        counts = ("dp", "tp", "pp", "cp", "ep", "interleave", "micro_batch", "micro_batches")
        for name in (*counts, "recompute_every"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name} must be at least 1, not {value}", "count from one")
        if self.zero not in (0, 1, 2, 3):
            raise InputError(
                f"there is no stage {self.zero} of sharded data parallelism",
                "0 shards nothing, 1 optimiser state, 2 gradients too, 3 weights too",
            )
        if (self.dp * self.cp) % self.ep:
            raise InputError(
                f"ep {self.ep} does not divide dp x cp = {self.dp * self.cp}",
                "experts are shared out among data-parallel devices; take a divisor",
            )
        self._check_shard_group()
        self._check_choices()
        if self.recompute_every > 1 and self.recompute is not Recompute.FULL:
            raise InputError(
                f"every {self.recompute_every} blocks compute again with full recomputation only",
                "take --recompute every:2, or recompute=full beside recompute_every",
            )
        self._check_pipeline()

    def _check_pipeline(self) -> None:
        if self.interleave > 1 and self.pp == 1:
            raise InputError(
                f"interleave {self.interleave} needs a pipeline", "give --pp above 1 as well"
            )
        if self.interleave > 1 and self.pipeline is PipelineSchedule.GPIPE:
            raise InputError(
                "gpipe runs one chunk per stage", "interleave with --pipeline 1f1b, or not at all"
            )
        if self.stage_layers and len(self.stage_layers) != self.chunks:
            raise InputError(
                f"{len(self.stage_layers)} stage sizes for {self.chunks} chunks "
                f"(pp {self.pp} x interleave {self.interleave})",
                "give one number of blocks per chunk",
            )
        if self.pipeline.splits_backward:
            self._check_split_backward()

    def _check_split_backward(self) -> None:
        if self.pp == 1:
            raise InputError(
                f"{self.pipeline} is an order of pipeline stages, and pp is 1",
                "add --pp 2, or leave --pipeline out",
            )
        chunks = self.pipeline.chunks_of_stage
        if self.interleave != chunks:
            raise InputError(
                f"{self.pipeline} runs {chunks} chunk{'s' * (chunks > 1)} per stage, not "
                f"{self.interleave}",
                f"give --interleave {chunks}",
            )
        if self.zero >= 2:
            raise InputError(
                f"{self.pipeline} with zero {self.zero}: gradients of inputs and of weights would "
                "each gather or scatter, which is not modelled",
                "take --zero 1, or --pipeline 1f1b",
            )

    @property
    def devices(self) -> int:
        """Devices the plan runs on."""
        return self.dp * self.tp * self.pp * self.cp

    @property
    def chunks(self) -> int:
        """Parts that the pipeline cuts the network into."""
        return self.pp * self.interleave

    def _check_shard_group(self) -> None:
        size = self.shard_group
        if size is None:
            return
        if size < 2 or self.holders % size or size % self.cp:
            raise InputError(
                f"groups of {size} cannot share out weights among dp x cp = {self.holders}",
                f"take a divisor of {self.holders} above 1 that is a multiple of cp {self.cp}",
            )
        if self.ep > 1 and self.shard_copies > 1:
            raise InputError(
                f"shard_group {size} with ep {self.ep}: experts that are shared out have other "
                "copies than the rest, which is not modelled",
                "leave --shard-group or --ep out",
            )

    def _check_choices(self) -> None:
        if self.context_form is not None and self.cp == 1:
            raise InputError(
                f"the form {self.context_form} is of context parallelism, and cp is 1",
                "add --cp 2, or leave --cp-form out",
            )
        if self.expert_imbalance is not None:
            if self.ep == 1:
                raise InputError(
                    "expert_imbalance is between devices that share out experts, and ep is 1",
                    "add --ep 2, or leave --expert-imbalance out",
                )
            if not 1.0 <= self.expert_imbalance <= self.ep:
                raise InputError(
                    f"the busiest of {self.ep} devices cannot have {self.expert_imbalance:g} times "
                    "the mean load",
                    f"give 1 (all alike) to {self.ep} (one has everything)",
                )
        if self.tp_overlap and not (self.tp > 1 and self.sequence_parallel):
            raise InputError(
                "tp_overlap hides the gathers and scatters of sequence parallelism",
                "add --tp 2 --sequence-parallel, or leave --tp-overlap out",
            )

    @property
    def holders(self) -> int:
        """Devices that train the same weights, whole or sharded: they sum their gradients."""
        return self.dp * self.cp

    @property
    def shard_degree(self) -> int:
        """Devices among which ``zero`` shares weights out."""
        return self.shard_group or self.holders

    @property
    def shard_copies(self) -> int:
        """Groups of ``shard_degree`` devices, each with a copy of what is sharded."""
        return self.holders // self.shard_degree

    def undivided(self) -> "Plan":
        """The plan with all that divides layers left out: degrees other than ``dp`` and ``pp``."""
        return replace(
            self,
            tp=1,
            ep=1,
            cp=1,
            sequence_parallel=False,
            shard_group=None,
            context_form=None,
            expert_imbalance=None,
            tp_overlap=False,
        )

    @property
    def label(self) -> str:
        """``dp 8 x tp 8 x pp 4``: the degrees that are not one."""
        degrees = (("dp", self.dp), ("tp", self.tp), ("pp", self.pp), ("cp", self.cp))
        parts = [f"{name} {size}" for name, size in degrees if size > 1] or ["dp 1"]
        further = [f"ep {self.ep}"] if self.ep > 1 else []
        further += [f"shard {self.shard_degree}"] if self.shard_copies > 1 else []
        return " x ".join(parts + further)

    def check_devices(self, devices: int) -> None:
        """Refuse a number of devices that the degrees do not multiply to."""
        if self.devices != devices:
            product = f"dp {self.dp} x tp {self.tp} x pp {self.pp} x cp {self.cp}"
            model = self.tp * self.pp * self.cp
            if devices % model == 0:
                hint = f"--dp {devices // model} fills them, or leave --dp out"
            else:
                hint = f"take a multiple of tp x pp x cp = {model} devices"
            raise InputError(f"{product} = {self.devices}, but there are {devices} devices", hint)

    def batches(self, batch: int) -> tuple[int, int]:
        """Micro-batch and number of micro-batches for ``batch`` samples per replica."""
        size, count = self.micro_batch, self.micro_batches
        if size is None and count is None:
            return batch, 1
        if size is None:
            assert count is not None
            size = max(1, batch // count)
        if count is None:
            count = max(1, batch // size)
        if size * count != batch:
            raise InputError(
                f"a batch of {batch} per replica is not {count} micro-batches of {size}",
                "micro-batch x micro-batches must be the batch per replica",
            )
        return size, count


def plan_for(devices: int, *, dp: int | None = None, **fields: Any) -> Plan:
    """The plan with ``fields`` on ``devices``; ``dp`` takes what the other degrees leave."""
    draft = Plan(**{**fields, "ep": 1, "shard_group": None, "expert_imbalance": None})
    model = draft.tp * draft.pp * draft.cp
    if dp is None and devices % model:
        raise InputError(
            f"{devices} devices are not a multiple of tp {draft.tp} x pp {draft.pp} x "
            f"cp {draft.cp} = {model}",
            "take degrees that divide the devices",
        )
    plan = Plan(dp=devices // model if dp is None else dp, **fields)
    plan.check_devices(devices)
    return plan
