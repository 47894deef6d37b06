"""Stage 1, partition: the layers that one device holds, and what it exchanges of each."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from paceline.constants import number
from paceline.hardware import Cluster
from paceline.predictor.comm.expert_messages import relative_gradient_cost
from paceline.predictor.framework_profiles import FrameworkProfile
from paceline.predictor.memory.activations import (
    KeepingHabits,
    KeptActivations,
    kept_activations,
)
from paceline.predictor.memory.loss_memory import LossMemory
from paceline.predictor.partition.device_share import divided_table
from paceline.predictor.partition.fused_operations import (
    with_fused_gates,
    with_fused_loss,
    with_unfused_scores,
)
from paceline.predictor.partition.layer_classes import LayerClasses, no_sharing, unique_layers
from paceline.predictor.partition.rank_layout import Layout, layout_of
from paceline.predictor.partition.sharding import ShardedLayer, Sharding, ShardMessage
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.plan_choices import ContextForm, LossKernel, Recompute
from paceline.predictor.plan.sync_policy import Synchronisation
from paceline.workload.adapters import WHOLE_BYTES, are_quantised
from paceline.workload.cost import LayerProfile
from paceline.workload.graph import Graph
from paceline.workload.ops import Embedding
from paceline.workload.precision import Precision
from paceline.workload.workload import Workload

Array = NDArray[np.float64]
Item = TypeVar("Item")


@dataclass(frozen=True, eq=False)
class Partition:
    """One device's share of a workload under a plan.

    Layers of equal cost form a class; ``kinds`` has one device's share of the first layer of each
    class, ``classes`` the class of each layer. ``precision`` has the number formats of the
    framework, ``sharding`` the graph as the framework runs it, ``layout`` the ranks on nodes.
    Arrays are by kind: ``loads`` is the load of the busiest device over the mean (above 1 for
    experts), ``gradient_bytes`` the gradients summed among replicas, ``weight_bytes`` the weights
    in an all-gather; those of experts are scaled to the cost of messages among all replicas.
    ``kept`` are the activations that backward needs.
    """

    workload: Workload
    cluster: Cluster
    plan: Plan
    framework: FrameworkProfile
    synchronisation: Synchronisation
    precision: Precision
    sharding: Sharding
    layout: Layout
    micro_batch: int
    micro_batches: int
    classes: LayerClasses
    kinds: tuple[ShardedLayer, ...]
    kept: KeptActivations
    loads: Array
    gradient_bytes: Array
    weight_bytes: Array

    @property
    def share_of_batch(self) -> float:
        """Samples of one micro-batch per device (a fraction with ``cp``)."""
        return self.micro_batch / self.plan.cp

    @property
    def cp_impl(self) -> ContextForm:
        """Form of context parallelism: of the plan, else of the framework."""
        return self.plan.cp_impl or self.framework.cp_impl

    @property
    def layers(self) -> list[ShardedLayer]:
        """One device's share of each layer; equal layers share one object."""
        return self.by_layer(self.kinds)

    def by_layer(self, of_kinds: Sequence[Item]) -> list[Item]:
        """Values by kind expanded to values by layer."""
        return [of_kinds[kind] for kind in self.classes.of_layer.tolist()]

    def total(self, of_kinds: Sequence[float] | Array) -> float:
        """Sum of values by kind over all layers."""
        return float(self.classes.all_counts @ np.asarray(of_kinds))


def partition(
    workload: Workload,
    cluster: Cluster,
    plan: Plan,
    framework: FrameworkProfile,
    *,
    each_layer: bool = False,
) -> Partition:
    """Divide a workload among the devices of a plan; see `Partition`.

    ``each_layer``: every layer is a kind of its own, for times measured by layer.
    """
    precision = framework.precision(workload.precision)
    habits = habits_of(plan, framework)
    sharding = _sharding(
        workload.graph,
        workload.sequence,
        precision,
        plan.fused_attention,
        framework.fused_gates,
        habits.loss.kernel is not LossKernel.PLAIN,
    )
    classes = _classes(sharding, plan, each_layer=each_layer)
    kinds = _shares(
        sharding, plan.tp, plan.ep, plan.expert_tp, plan.sequence_parallel, classes.first
    )
    if framework.divides_embeddings and plan.holders > 1:
        kinds = tuple(map(partial(_table_share, sharding, plan), kinds, classes.first))
    micro_batch, micro_batches = plan.batches(workload.batch)
    kept = kept_activations(
        sharding,
        kinds,
        plan.recompute,
        plan.tp,
        plan.sequence_parallel,
        classes.first,
        plan.recompute_every,
        habits,
        plan.recompute_modules,
    )
    busiest = busiest_expert_load(plan)
    layout = layout_of(plan, cluster.devices_per_node)
    spread = np.array([_exchanged_share(part, layout, cluster, framework) for part in kinds])
    gradients = np.array([float(p.profile.gradient_bytes.at(workload.batch)) for p in kinds])
    return Partition(
        workload=workload,
        cluster=cluster,
        plan=plan,
        framework=framework,
        synchronisation=plan.synchronisation or framework.synchronisation,
        precision=precision,
        sharding=sharding,
        layout=layout,
        micro_batch=micro_batch,
        micro_batches=micro_batches,
        classes=classes,
        kinds=kinds,
        kept=kept,
        loads=np.array([busiest if part.is_expert else 1.0 for part in kinds]),
        gradient_bytes=spread * gradients,
        weight_bytes=spread * weights_at(workload, kinds, precision.operand_bytes, classes.first),
    )


def habits_of(plan: Plan, framework: FrameworkProfile) -> KeepingHabits:
    """What the program keeps in addition, by plan and framework."""
    loss = LossMemory(plan.loss_kernel or framework.loss_kernel, framework.loss_copies)
    return KeepingHabits(framework.copies_keys_values, framework.packed_projection, loss)


def busiest_expert_load(plan: Plan) -> float:
    """Load of the busiest expert-parallel device over the mean: given, or the prior."""
    if plan.ep == 1:
        return 1.0
    prior = min(number("parallelism.experts.imbalance"), float(plan.ep))
    return plan.expert_imbalance or prior


def weights_at(
    workload: Workload, kinds: Sequence[ShardedLayer], width: float, positions: Sequence[int]
) -> Array:
    """Bytes of each kind's weights at ``width`` bytes each; frozen ones in their own format.

    ``positions`` are those of the first layer of each kind.
    """
    frozen = workload.frozen_bytes
    if frozen is None:
        return np.array([float(part.profile.parameters * width) for part in kinds])
    return np.array(
        [
            float(part.profile.trainable_parameters * width)
            + (frozen if quantised else WHOLE_BYTES) * frozen_parameters(part.profile)
            for part, quantised in zip(
                kinds, are_quantised(workload.graph, tuple(positions)), strict=True
            )
        ]
    )


def frozen_parameters(profile: LayerProfile) -> float:
    """Parameters of a layer that are not trained."""
    return float(profile.parameters - profile.trainable_parameters)


def _classes(sharding: Sharding, plan: Plan, *, each_layer: bool) -> LayerClasses:
    if each_layer:
        return no_sharing(len(sharding.graph.nodes))
    by_operation = plan.recompute is Recompute.OPERATION
    return unique_layers(
        sharding,
        plan.sequence_parallel,
        plan.recompute_every,
        by_operation=by_operation,
        modules=plan.recompute_modules,
    )


def _table_share(sharding: Sharding, plan: Plan, part: ShardedLayer, position: int) -> ShardedLayer:
    """A sparse embedding table divided among all replicas (HugeCTR, DLRM, TorchRec).

    Each device looks up the rows of its tables for the samples of all devices, and sends them the
    vectors; gradients of the vectors return in backward.
    """
    node = sharding.graph.nodes[position]
    if not (isinstance(node.op, Embedding) and node.op.sparse):
        return part
    return replace(
        part,
        profile=divided_table(part.profile, plan.holders),
        rows=(ShardMessage("all_to_all", sharding.output_bytes(node.name)),),
    )


def _exchanged_share(
    part: ShardedLayer, layout: Layout, cluster: Cluster, framework: FrameworkProfile
) -> float:
    """Factor on the bytes of a layer in messages among replicas: experts have other replicas."""
    if part.rows:
        return 0.0  # every row is on one device
    if not part.is_expert or layout.expert_replicas == layout.replicas:
        return 1.0
    share = part.expert_share
    library = framework.library(cluster.device)
    return 1.0 - share + share * relative_gradient_cost(layout, cluster, library)


@lru_cache(maxsize=32)
def _sharding(
    graph: Graph,
    sequence: int | None,
    number_format: Precision,
    fused_attention: bool,
    fused_gates: bool,
    fused_loss: bool,
) -> Sharding:
    run = graph if fused_attention else with_unfused_scores(graph)
    run = with_fused_gates(run) if fused_gates else run
    run = with_fused_loss(run) if fused_loss else run
    return Sharding(run, sequence, number_format)


@lru_cache(maxsize=256)
def _shares(
    sharding: Sharding,
    tp: int,
    ep: int,
    etp: int,
    sequence_parallel: bool,
    positions: tuple[int, ...],
) -> tuple[ShardedLayer, ...]:
    return sharding.layers(tp, ep, sequence_parallel, positions, etp)
