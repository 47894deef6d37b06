"""Plan: degrees of parallelism and policies of a job."""

import math
from dataclasses import dataclass, replace
from typing import Any

from paceline.errors import InputError
from paceline.predictor.comm.compression import NO_COMPRESSION, Compression
from paceline.predictor.plan.plan_choices import (
    ContextForm,
    ExpertDispatch,
    LossKernel,
    Module,
    Offload,
    OptimizerState,
    PipelineSchedule,
    Recompute,
)
from paceline.predictor.plan.sync_policy import Synchronisation
from paceline.predictor.plan.validate_plan import check_consistent
from paceline.units import plural


@dataclass(frozen=True)
class Plan:
    """Degrees of parallelism and policies. The degrees multiply to the number of devices.

    ``dp`` replicas, each of ``tp`` x ``pp`` x ``cp`` devices: tensor (or filter), pipeline and
    context parallel. The ``tp`` x ``cp`` x ``dp`` devices of a stage are divided a second time for
    experts: ``ep`` groups of ``etp`` devices hold all of them, and each expert is divided among the
    ``etp`` devices of a group (see `expert_tp` for None). ``zero`` is
    the ZeRO stage (1 optimizer state, 2 gradients too, 3 weights too). ``shard_group`` is the size
    of a shard group, and groups hold copies of each other (HSDP); None for one group of all ``dp``
    x ``cp``. ``optimizer_state`` is the precision of momenta. Full recomputation applies to one
    block in ``recompute_every``, selective recomputation to ``recompute_modules`` (none: the
    scores of attention). ``cp_impl`` and ``loss_kernel`` None are the default of the framework.
    ``expert_imbalance`` is the load of the busiest expert-parallel device over the mean; None is a
    prior that widens the interval. ``offload`` moves state to the host. ``tp_overlap`` splits GEMMs
    to overlap tensor-parallel communication with them; ``ep_overlap`` overlaps the all-to-all of
    experts with the computing of another micro-batch. ``ep_impl`` sends each token once to each
    expert, or once to each node.

    A step has ``micro_batches`` micro-batches of ``micro_batch`` samples; a missing value follows
    from the batch. Each pipeline stage holds ``interleave`` chunks; ``stage_layers`` gives the
    number of blocks of each chunk when they are uneven. Without ``fused_attention`` attention
    writes its scores to memory, which selective recomputation avoids. ``synchronisation`` None is
    the default of the framework.
    """

    dp: int = 1
    tp: int = 1
    pp: int = 1
    cp: int = 1
    ep: int = 1
    etp: int | None = None
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
    optimizer_state: OptimizerState = OptimizerState.FP32
    recompute_every: int = 1
    cp_impl: ContextForm | None = None
    expert_imbalance: float | None = None
    offload: tuple[Offload, ...] = ()
    tp_overlap: bool = False
    ep_impl: ExpertDispatch = ExpertDispatch.ALL_TO_ALL
    ep_overlap: bool = False
    loss_kernel: LossKernel | None = None
    recompute_modules: tuple[Module, ...] = ()

    def __post_init__(self) -> None:
        check_consistent(self)

    @property
    def devices(self) -> int:
        """Devices the plan runs on."""
        return self.dp * self.tp * self.pp * self.cp

    @property
    def chunks(self) -> int:
        """Pipeline chunks of the network."""
        return self.pp * self.interleave

    @property
    def holders(self) -> int:
        """Devices that train the same weights, whole or sharded, and sum their gradients."""
        return self.dp * self.cp

    @property
    def expert_tp(self) -> int:
        """Devices among which each expert is divided.

        The default folds experts over tensor parallelism (DeepSpeed, torchtitan, Megatron's
        recipes): devices with different tokens hold whole experts.
        """
        if self.etp is not None:
            return self.etp
        return 1 if self.ep > 1 and self.sequence_parallel else self.tp

    @property
    def folds_experts(self) -> bool:
        """Whether the devices of tensor parallelism divide experts in another way than layers."""
        return self.expert_tp != self.tp

    @property
    def expert_holders(self) -> int:
        """Devices that train the same experts and sum their gradients."""
        return self.tp * self.holders // (self.expert_tp * self.ep)

    @property
    def shard_degree(self) -> int:
        """Devices of a shard group."""
        return self.shard_group or self.holders

    @property
    def shard_copies(self) -> int:
        """Shard groups, each with a copy of the sharded state."""
        return self.holders // self.shard_degree

    @property
    def assumes_expert_load(self) -> bool:
        """Whether a prior replaces the load of the busiest expert-parallel device."""
        return self.ep > 1 and self.expert_imbalance is None

    def on_one_device(self) -> "Plan":
        """The plan of one device that trains one replica's batch with the same memory options."""
        return Plan(
            micro_batch=self.micro_batch,
            micro_batches=self.micro_batches,
            recompute=self.recompute,
            recompute_every=self.recompute_every,
            fused_attention=self.fused_attention,
            optimizer_state=self.optimizer_state,
            offload=self.offload,
            loss_kernel=self.loss_kernel,
            recompute_modules=self.recompute_modules,
        )

    def undivided(self) -> "Plan":
        """The plan without degrees that divide layers: all but ``dp``, ``pp`` and ``ep`` are 1.

        Experts stay divided among replicas: on one device the arithmetic is the same, but each of
        the many experts gets few tokens, which no plan for one device does.
        """
        return replace(
            self,
            tp=1,
            ep=math.gcd(self.ep, self.dp),
            etp=None,
            cp=1,
            sequence_parallel=False,
            shard_group=None,
            cp_impl=None,
            expert_imbalance=1.0 if math.gcd(self.ep, self.dp) > 1 else None,
            tp_overlap=False,
            ep_impl=ExpertDispatch.ALL_TO_ALL,
            ep_overlap=False,
        )

    @property
    def format_recompute(self) -> str:
        """The value of ``--recompute``: ``full``, ``every:2``, ``mlp,layernorm``."""
        if self.recompute_modules:
            return ",".join(self.recompute_modules)
        return f"every:{self.recompute_every}" if self.recompute_every > 1 else str(self.recompute)

    @property
    def label(self) -> str:
        """The degrees above 1, as in ``dp 8 x tp 8 x pp 4``."""
        degrees = (("dp", self.dp), ("tp", self.tp), ("pp", self.pp), ("cp", self.cp))
        parts = [f"{name} {size}" for name, size in degrees if size > 1] or ["dp 1"]
        further = [f"ep {self.ep}"] if self.ep > 1 else []
        further += [f"etp {self.expert_tp}"] if self.folds_experts else []
        further += [f"shard {self.shard_degree}"] if self.shard_copies > 1 else []
        return " x ".join(parts + further)

    def check_devices(self, devices: int) -> None:
        """Reject a number of devices that differs from the product of the degrees."""
        if self.devices != devices:
            product = f"dp {self.dp} x tp {self.tp} x pp {self.pp} x cp {self.cp}"
            model = self.tp * self.pp * self.cp
            if devices % model == 0:
                hint = f"use --dp {devices // model}, or omit --dp"
            else:
                hint = f"use a multiple of tp x pp x cp = {model} devices"
            given = plural(devices, "device")
            raise InputError(f"{product} = {self.devices}, but the cluster has {given}", hint)

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
                f"batch per replica {batch} is not {count} micro-batches of {size}",
                "make micro-batch x micro-batches equal to the batch per replica",
            )
        return size, count


def plan_for(devices: int, *, dp: int | None = None, **fields: Any) -> Plan:
    """The plan with ``fields`` on ``devices``; ``dp`` defaults to the remaining devices."""
    rest = ("ep", "etp", "ep_impl", "ep_overlap", "shard_group", "expert_imbalance")
    draft = Plan(**{name: value for name, value in fields.items() if name not in rest})
    model = draft.tp * draft.pp * draft.cp
    if dp is None and devices % model:
        raise InputError(
            f"{plural(devices, 'device')} cannot be divided by tp {draft.tp} x pp {draft.pp} x "
            f"cp {draft.cp} = {model}",
            "use degrees that divide the number of devices",
        )
    plan = Plan(dp=devices // model if dp is None else dp, **fields)
    plan.check_devices(devices)
    return plan
