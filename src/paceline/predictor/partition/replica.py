"""One replica of a workload under a plan: layer times and messages on a cluster."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TypeVar

import numpy as np

from paceline.constants import number
from paceline.hardware import Cluster
from paceline.predictor.comm.collective_cost import CollectiveCost, collective_cost
from paceline.predictor.comm.layer_comm import LayerExchange
from paceline.predictor.comm.rank_group import Group
from paceline.predictor.comm.replica_comm import layer_exchanges
from paceline.predictor.framework_profiles import FrameworkProfile
from paceline.predictor.kernels.efficiency import Efficiency, load_efficiency
from paceline.predictor.kernels.roofline import executed_share, layer_times, with_measured
from paceline.predictor.memory.activations import KeptActivations, kept_activations
from paceline.predictor.memory.offload import with_moved_activations
from paceline.predictor.partition.fused_gates import with_fused_gates
from paceline.predictor.partition.layer_classes import LayerClasses, no_sharing, unique_layers
from paceline.predictor.partition.rank_layout import Layout, layout_of
from paceline.predictor.partition.sharding import ShardedLayer, Sharding
from paceline.predictor.partition.unfused_attention import with_unfused_scores
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.plan_choices import ContextForm, Recompute
from paceline.predictor.schedule.step_costs import LayerTime
from paceline.workload.blocks import part_of
from paceline.workload.cost import GraphCost, GraphProfile, LayerProfile
from paceline.workload.graph import Graph
from paceline.workload.precision import Precision
from paceline.workload.workload import Workload

Item = TypeVar("Item")


@dataclass(frozen=True)
class Replica:
    """A workload divided by a plan on a cluster, run by a framework.

    ``measured`` layer times replace modelled ones by name, for one micro-batch of one device.
    """

    workload: Workload
    cluster: Cluster
    plan: Plan
    framework: FrameworkProfile
    efficiency: Efficiency | None = None
    measured: tuple[LayerTime, ...] = ()

    @cached_property
    def precision(self) -> Precision:
        """Number formats as the framework stores and sends them."""
        return self.framework.precision(self.workload.precision)

    @cached_property
    def sharding(self) -> Sharding:
        """The graph at its sequence and precision."""
        return _sharding(
            self.workload.graph,
            self.workload.sequence,
            self.precision,
            self.plan.fused_attention,
            self.framework.fused_gates,
        )

    @cached_property
    def layer_classes(self) -> LayerClasses:
        """Classes of layers with equal cost; measured layers all differ."""
        if self.measured:
            return no_sharing(len(self.workload.graph.nodes))
        plan = self.plan
        by_operation = plan.recompute is Recompute.OPERATION
        return unique_layers(
            self.sharding, plan.sequence_parallel, plan.recompute_every, by_operation=by_operation
        )

    @cached_property
    def kinds(self) -> tuple[ShardedLayer, ...]:
        """One device's share of each kind of layer, named after its first layer."""
        plan = self.plan
        return self.sharding.layers(
            plan.tp, plan.ep, plan.sequence_parallel, self.layer_classes.first
        )

    @cached_property
    def parts(self) -> tuple[ShardedLayer, ...]:
        """One device's share of each layer; equal layers share one object."""
        return tuple(self.each(self.kinds))

    def each(self, of_kinds: Sequence[Item]) -> list[Item]:
        """Values by kind expanded to values by layer."""
        return [of_kinds[number] for number in self.layer_classes.of_layer.tolist()]

    def total(self, of_kinds: Sequence[float], *runs: range) -> float:
        """Sum of values by kind over the layers of some runs, or over all layers."""
        everything = (range(len(self.layer_classes.of_layer)),)
        return float(self.layer_classes.counts(*(runs or everything)) @ np.asarray(of_kinds))

    @cached_property
    def layout(self) -> Layout:
        """Placement of the ranks on nodes."""
        return layout_of(self.plan, self.cluster.devices_per_node)

    @cached_property
    def micro_batch(self) -> int:
        """Samples per micro-batch."""
        return self.plan.batches(self.workload.batch)[0]

    @cached_property
    def micro_batches(self) -> int:
        """Micro-batches per step."""
        return self.plan.batches(self.workload.batch)[1]

    @property
    def share_of_batch(self) -> float:
        """Samples of one micro-batch per device (a fraction with ``cp``)."""
        return self.micro_batch / self.plan.cp

    @cached_property
    def kept(self) -> KeptActivations:
        """Kept bytes of each kind, and whether it is recomputed."""
        return kept_activations(
            self.sharding,
            self.kinds,
            self.plan.recompute,
            self.plan.tp,
            self.plan.sequence_parallel,
            self.layer_classes.first,
            self.plan.recompute_every,
            self.framework.copies_keys_values,
        )

    @cached_property
    def weight_shares(self) -> list[float]:
        """Share of weight gradients in each layer's backward, by FLOP."""
        return self.each([_weight_share(part.profile) for part in self.kinds])

    @cached_property
    def weight_bytes(self) -> list[float]:
        """Bytes of each layer's weights in an all-gather."""
        return self.each(self.weights_at(self.precision.operand_bytes))

    def weights_at(self, width: float) -> list[float]:
        """Bytes of each kind's weights at ``width`` bytes each; frozen ones in their own format."""
        frozen = self.workload.frozen_bytes
        if frozen is None:
            return [float(part.profile.parameters * width) for part in self.kinds]
        return [
            float(part.profile.trainable_parameters * width)
            + frozen * _frozen_parameters(part.profile)
            for part in self.kinds
        ]

    @cached_property
    def layers(self) -> list[LayerTime]:
        """Times of one micro-batch on one device, exchanges within the replica included."""
        return self.layers_at()

    def layers_at(
        self, scale: float = 1.0, modelled: float = 1.0, bandwidth: float = 1.0
    ) -> list[LayerTime]:
        """Layers with computing time times ``scale`` and message speed times ``bandwidth``.

        ``modelled`` is a further factor on layers that were not measured. Equal layers of a
        pipeline share one object, named after the first.
        """
        layers = self.each(self.kinds_at(scale, modelled, bandwidth))
        if self.plan.pp > 1:
            return layers
        return [
            LayerTime(
                node.name,
                own.forward_seconds,
                own.backward_seconds,
                own.gradient_bytes,
                own.recompute_seconds,
                own.forward_exchange_seconds,
                own.backward_exchange_seconds,
            )
            for own, node in zip(layers, self.workload.graph.nodes, strict=True)
        ]

    def kinds_at(
        self, scale: float = 1.0, modelled: float = 1.0, bandwidth: float = 1.0
    ) -> list[LayerTime]:
        """One layer of each kind, as `layers_at` has them."""
        measured = {layer.name for layer in self.measured}
        result = []
        for layer, size, again, exchange, load in zip(
            self.computed,
            self._gradient_bytes,
            self.kept.again,
            self._exchanges,
            self.loads,
            strict=True,
        ):
            factor = load * (scale if layer.name in measured else scale * modelled)
            computing, back = factor * layer.forward_seconds, factor * layer.backward_seconds
            if exchange.context is not None:
                computing = exchange.context.computing(computing, 0)
                back = exchange.context.computing(back, 1)
            sent = exchange.waiting(computing, bandwidth, 0)
            returned = exchange.waiting(back, bandwidth, 1)
            recomputed = computing + sent if again else 0.0
            result.append(LayerTime(layer.name, computing, back, size, recomputed, sent, returned))
        if not self.plan.offload:
            return result
        counts = self._counts_in_blocks
        return with_moved_activations(result, self.moved_bytes, counts, self.plan, self.cluster)

    @cached_property
    def _counts_in_blocks(self) -> list[float]:
        """Number of layers of each kind in the numbered blocks."""
        numbered = [bool(part_of(node.name)) for node in self.workload.graph.nodes]
        found = np.bincount(self.layer_classes.of_layer[numbered], minlength=len(self.kinds))
        return [float(count) for count in found]

    @cached_property
    def moved_bytes(self) -> list[float]:
        """Kept bytes of each kind for one micro-batch, in numbered blocks only."""
        nodes = self.workload.graph.nodes
        return [
            load * float(size.at(self.share_of_batch)) if part_of(nodes[first].name) else 0.0
            for first, load, size in zip(
                self.layer_classes.first, self.loads, self.kept.sizes, strict=True
            )
        ]

    def cost(self, operation: str, group: Group) -> CollectiveCost:
        """Seconds of a collective operation of this plan, by size."""
        library = self.framework.library(self.cluster.device)
        if isinstance(group.ranks, np.ndarray) or isinstance(group.ranks_per_node, np.ndarray):
            return collective_cost(operation, group, self.cluster, library)
        key = (operation, group)
        if key not in self._costs:
            self._costs[key] = collective_cost(operation, group, self.cluster, library)
        return self._costs[key]

    @cached_property
    def _costs(self) -> dict[tuple[str, Group], CollectiveCost]:
        return {}

    @cached_property
    def computed(self) -> list[LayerTime]:
        """Computing time of each kind of layer, measured or modelled."""
        profile = GraphProfile(tuple(part.profile for part in self.kinds))
        if {layer.name for layer in self.measured} == {part.name for part in profile.layers}:
            known = {layer.name: layer for layer in self.measured}
            return [known[part.name] for part in profile.layers]
        predicted = layer_times(
            GraphCost(profile, self.share_of_batch),
            self.cluster.device,
            self.precision,
            self.efficiency,
            convolution=self.framework.convolution,
            pointwise_traffic=self.framework.pointwise_traffic,
            dispatch_seconds=self.framework.dispatch_seconds,
        )
        return with_measured(self._with_conversions(predicted), self.measured)

    @cached_property
    def executed_share(self) -> float:
        """Executed FLOP over FLOP of the model; below 1 with Winograd convolutions."""
        cost = GraphCost(self.workload.profile, self.share_of_batch)
        convolution = self.framework.convolution
        return executed_share(
            cost, self.cluster.device, self.precision, self.efficiency, convolution
        )

    def _with_conversions(self, layers: list[LayerTime]) -> list[LayerTime]:
        """Layer times with dequantisation of frozen weights in each pass (QLoRA)."""
        frozen = self.workload.frozen_bytes
        if frozen is None:
            return layers
        constants, device = self.efficiency or load_efficiency(), self.cluster.device
        rate = device.known_memory_bandwidth * constants.memory_ceiling("cast")
        width = (frozen + self.precision.operand_bytes) / rate
        extra = [width * _frozen_parameters(part.profile) for part in self.kinds]
        return [
            replace(
                layer,
                forward_seconds=layer.forward_seconds + more,
                backward_seconds=layer.backward_seconds + more,
            )
            for layer, more in zip(layers, extra, strict=True)
        ]

    @cached_property
    def _exchanges(self) -> list[LayerExchange]:
        """Messages of each kind of layer within the replica."""
        return layer_exchanges(self)

    @cached_property
    def loads(self) -> list[float]:
        """Load of the busiest device over the mean, by kind; above 1 for expert layers."""
        busiest = self.expert_imbalance
        return [busiest if part.is_expert else 1.0 for part in self.kinds]

    @property
    def expert_imbalance(self) -> float:
        """Load of the busiest expert-parallel device over the mean: given, or the prior."""
        if self.plan.ep == 1:
            return 1.0
        prior = min(number("parallelism.experts.imbalance"), float(self.plan.ep))
        return self.plan.expert_imbalance or prior

    @property
    def context_form(self) -> ContextForm:
        """Form of context parallelism: of the plan, else of the framework."""
        return self.plan.context_form or self.framework.context_form

    @cached_property
    def _gradient_bytes(self) -> list[float]:
        """Gradient bytes of each kind of layer to sum among replicas."""
        return [self._summed_bytes(part) for part in self.kinds]

    def _summed_bytes(self, part: ShardedLayer) -> float:
        """Gradient bytes, scaled for experts because they have fewer replicas.

        A ring moves 2 (N-1)/N of its bytes, so expert bytes are scaled by the ratio of the two.
        """
        size = float(part.profile.gradient_bytes.at(self.workload.batch))
        if not part.is_expert or self.plan.ep == 1:
            return size
        everyone = self.plan.holders
        holders = everyone // self.plan.ep
        return size * ((holders - 1) / holders) / ((everyone - 1) / everyone)


def _frozen_parameters(profile: LayerProfile) -> float:
    return float(profile.parameters - profile.trainable_parameters)


def _weight_share(profile: LayerProfile) -> float:
    """FLOP share of weight gradients; 0 for layers without GEMMs in backward."""
    weights, inputs = (
        float(sum(g.m * g.n * g.k * g.count * g.executed for g in gemms))
        for gemms in (profile.weight_gradient_gemms, profile.input_gradient_gemms)
    )
    return weights / (weights + inputs) if weights > 0 else 0.0


@lru_cache(maxsize=32)
def _sharding(
    graph: Graph,
    sequence: int | None,
    number_format: Precision,
    fused_attention: bool,
    fused_gates: bool,
) -> Sharding:
    unfused = graph if fused_attention else with_unfused_scores(graph)
    run = with_fused_gates(unfused) if fused_gates else unfused
    return Sharding(run, sequence, number_format)
