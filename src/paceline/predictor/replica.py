"""One replica of a workload under a plan: times of its layers and messages on a cluster."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TypeVar

import numpy as np

from paceline.constants import number
from paceline.hardware import Cluster
from paceline.plan.activations import KeptActivations, kept_activations
from paceline.plan.alike import Alike, alike_layers, all_apart
from paceline.plan.choices import ContextForm, Recompute
from paceline.plan.fused_gates import with_fused_gates
from paceline.plan.plan import Plan
from paceline.plan.sharding import ShardedLayer, Sharding
from paceline.plan.written_attention import with_written_scores
from paceline.predictor.collectives import CollectiveCost, Group, collective_cost
from paceline.predictor.compute import layer_times, with_measured
from paceline.predictor.efficiency import Efficiency, load_efficiency
from paceline.predictor.frameworks import FrameworkProfile
from paceline.predictor.layer_exchanges import LayerExchange
from paceline.predictor.layout import Layout, layout_of
from paceline.predictor.offload import with_moved_activations
from paceline.predictor.replica_exchanges import layer_exchanges
from paceline.predictor.step_costs import LayerTime
from paceline.workload.blocks import part_of
from paceline.workload.cost import GraphCost, GraphProfile, LayerProfile
from paceline.workload.graph import Graph
from paceline.workload.precision import Precision
from paceline.workload.workload import Workload

Item = TypeVar("Item")


@dataclass(frozen=True)
class Replica:
    """A workload divided by a plan on a cluster with a framework's habits.

    ``measured`` layers replace what the device model says, by name, for one micro-batch of one
    device.
    """

    workload: Workload
    cluster: Cluster
    plan: Plan
    framework: FrameworkProfile
    efficiency: Efficiency | None = None
    measured: tuple[LayerTime, ...] = ()

    @cached_property
    def precision(self) -> Precision:
        """The widths of numbers, as the framework keeps and sends them."""
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
    def alike(self) -> Alike:
        """Which layers cost the same; those that were measured all differ."""
        if self.measured:
            return all_apart(len(self.workload.graph.nodes))
        plan = self.plan
        by_operation = plan.recompute is Recompute.OPERATION
        return alike_layers(
            self.sharding, plan.sequence_parallel, plan.recompute_every, by_operation=by_operation
        )

    @cached_property
    def kinds(self) -> tuple[ShardedLayer, ...]:
        """One device's part of each kind of layer, named after the first of it."""
        plan = self.plan
        return self.sharding.layers(plan.tp, plan.ep, plan.sequence_parallel, self.alike.first)

    @cached_property
    def parts(self) -> tuple[ShardedLayer, ...]:
        """One device's part of each layer: one object for all that are alike."""
        return tuple(self.each(self.kinds))

    def each(self, of_kinds: Sequence[Item]) -> list[Item]:
        """What holds for each kind, for each layer."""
        return [of_kinds[number] for number in self.alike.place.tolist()]

    def total(self, of_kinds: Sequence[float], *runs: range) -> float:
        """Sum over the layers of some runs, or over all, of what holds for each kind."""
        everything = (range(len(self.alike.place)),)
        return float(self.alike.counts(*(runs or everything)) @ np.asarray(of_kinds))

    @cached_property
    def layout(self) -> Layout:
        """Where the ranks lie."""
        return layout_of(self.plan, self.cluster.devices_per_node)

    @cached_property
    def micro_batch(self) -> int:
        """Samples that go through at a time."""
        return self.plan.batches(self.workload.batch)[0]

    @cached_property
    def micro_batches(self) -> int:
        """How often, per step."""
        return self.plan.batches(self.workload.batch)[1]

    @property
    def share_of_batch(self) -> float:
        """Samples of one micro-batch whose tokens one device has (a fraction with ``cp``)."""
        return self.micro_batch / self.plan.cp

    @cached_property
    def kept(self) -> KeptActivations:
        """What each kind keeps for backward and whether it is computed again."""
        return kept_activations(
            self.sharding,
            self.kinds,
            self.plan.recompute,
            self.plan.tp,
            self.plan.sequence_parallel,
            self.alike.first,
            self.plan.recompute_every,
            self.framework.copies_keys_values,
        )

    @cached_property
    def weight_shares(self) -> list[float]:
        """Share of each layer's backward that computes gradients of weights, by its FLOP."""
        return self.each([_weight_share(part.profile) for part in self.kinds])

    @cached_property
    def weight_bytes(self) -> list[float]:
        """Bytes of each layer's weights as they are gathered."""
        return self.each(self.weights_at(self.precision.operand_bytes))

    def weights_at(self, width: float) -> list[float]:
        """Bytes of each kind's weights of so many bytes each, frozen ones in their own width."""
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
        """The layers with computing ``scale`` times as long and messages so much faster.

        ``modelled`` multiplies the layers that were not measured once more. Layers of a pipeline
        that are alike are one object, named after the first of them.
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
        """How many layers of each kind the numbered blocks have."""
        numbered = [bool(part_of(node.name)) for node in self.workload.graph.nodes]
        found = np.bincount(self.alike.place[numbered], minlength=len(self.kinds))
        return [float(count) for count in found]

    @cached_property
    def moved_bytes(self) -> list[float]:
        """What each kind keeps of one micro-batch, of the numbered blocks only."""
        nodes = self.workload.graph.nodes
        return [
            load * float(size.at(self.share_of_batch)) if part_of(nodes[first].name) else 0.0
            for first, load, size in zip(self.alike.first, self.loads, self.kept.sizes, strict=True)
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
        """Computing of each kind of layer: measured, else as the device model says."""
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

    def _with_conversions(self, layers: list[LayerTime]) -> list[LayerTime]:
        """Layers whose frozen weights are made as wide as products read them, in each pass."""
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
        """Messages of each kind of layer with its own devices."""
        return layer_exchanges(self)

    @cached_property
    def loads(self) -> list[float]:
        """Work of the busiest device over the mean, of each kind: experts that are shared out."""
        busiest = self.expert_imbalance
        return [busiest if part.is_expert else 1.0 for part in self.kinds]

    @property
    def expert_imbalance(self) -> float:
        """Load of the busiest expert-parallel device over the mean: as stated, else the prior."""
        if self.plan.ep == 1:
            return 1.0
        prior = min(number("parallelism.experts.imbalance"), float(self.plan.ep))
        return self.plan.expert_imbalance or prior

    @property
    def context_form(self) -> ContextForm:
        """How tokens that are shared out meet: as the plan says, else as the framework does it."""
        return self.plan.context_form or self.framework.context_form

    @cached_property
    def _gradient_bytes(self) -> list[float]:
        """Bytes of each kind of layer to sum among replicas."""
        return [self._summed_bytes(part) for part in self.kinds]

    def _summed_bytes(self, part: ShardedLayer) -> float:
        """Experts have fewer replicas: as many fewer bytes.

        A ring moves 2 (N-1)/N of its bytes, so experts count with the ratio of these.
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
    """Layers without products in backward have none: theirs passes gradients on."""
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
    written = graph if fused_attention else with_written_scores(graph)
    run = with_fused_gates(written) if fused_gates else written
    return Sharding(run, sequence, number_format)
