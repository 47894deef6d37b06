"""Layer times and sizes for one tensor-parallel degree and many micro-batches."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from paceline.predictor.comm.collective_cost import collective_cost
from paceline.predictor.kernels.efficiency import Efficiency
from paceline.predictor.kernels.gemm_arrays import BACKWARD, FORWARD
from paceline.predictor.kernels.layer_arrays import Array, LayerArrays
from paceline.predictor.memory.activations import (
    KeepingHabits,
    KeptActivations,
    kept_activations,
    whole_bytes,
    working_bytes,
)
from paceline.predictor.memory.placeholder_gradients import (
    has_placeholders,
    output_placeholder_bytes,
    placeholder_bytes,
)
from paceline.predictor.partition.layer_classes import LayerClasses
from paceline.predictor.partition.partition import Partition, habits_of
from paceline.predictor.partition.rank_layout import Layout
from paceline.predictor.partition.sharding import ShardedLayer, ShardMessage
from paceline.predictor.plan.plan_choices import SEARCHED_RECOMPUTATIONS
from paceline.predictor.schedule.step_costs import LayerTime
from paceline.workload.cost import Affine

MODES = SEARCHED_RECOMPUTATIONS
"""Recomputation modes, in the order of their array axis."""


@dataclass(frozen=True)
class Sums:
    """Costs of a run of layers on one device.

    Seconds and kept bytes are for one micro-batch. ``forward``, ``forward_exchange`` and
    ``backward_exchange`` have the axis of micro-batches; ``backward`` (including recomputation) and
    ``kept_bytes`` also have an axis for recomputation. ``whole_bytes`` are gathered tensors that
    are released late, if the framework does so; ``forward_flops`` is FLOP of forward.
    """

    forward: Array
    forward_exchange: Array
    backward: Array
    backward_exchange: Array
    kept_bytes: Array
    whole_bytes: Array
    forward_flops: Array
    parameters: float
    trainable_parameters: float
    gradient_bytes: float
    weight_bytes: float


class LayerTable:
    """Times and sizes of every layer; equal layers are evaluated once.

    ``whole`` is the undivided network with its cluster and framework. Equal layers share one object
    in ``parts``.
    """

    def __init__(
        self,
        whole: Partition,
        efficiency: Efficiency | None,
        classes: LayerClasses,
        tp: int,
        sequence_parallel: bool,
        micro_batches: Array,
    ) -> None:
        self.whole = whole
        self.efficiency = efficiency
        self.tp = tp
        self.sequence_parallel = sequence_parallel
        self.micro_batches = micro_batches
        self._class_of, self._first = classes.of_layer, classes.first
        kinds = whole.sharding.layers(tp, 1, sequence_parallel, self._first)
        self._kinds = kinds
        self.parts = tuple(kinds[number] for number in self._class_of)
        self._known: dict[bytes, Sums] = {}
        self._evaluate(kinds)

    def sums(self, positions: Sequence[int]) -> Sums:
        """Total costs of the layers at some positions of the graph."""
        counts = np.bincount(self._class_of[list(positions)], minlength=len(self._first)).astype(
            float
        )
        key = counts.tobytes()
        if key not in self._known:
            self._known[key] = self._sums(counts)
        return self._known[key]

    def layer_times(
        self, positions: Sequence[int], micro_batch: int, mode: int, factor: float
    ) -> list[LayerTime]:
        """Layer times for the scheduler, at one point of the axes.

        ``factor`` is the computing time of the slowest device over the mean one.
        """
        kinds = [
            LayerTime(
                name="",
                forward_seconds=factor * float(self._forward[kind, micro_batch]),
                backward_seconds=factor * float(self.backward_by_layer[kind, micro_batch, mode]),
                gradient_bytes=float(self._gradient_bytes[kind]),
                forward_exchange_seconds=float(self._forward_exchange[kind, micro_batch]),
                backward_exchange_seconds=float(self._backward_exchange[kind, micro_batch]),
            )
            for kind in range(len(self._first))
        ]
        return [kinds[self._class_of[position]] for position in positions]

    def gradient_bytes(self, positions: Sequence[int]) -> list[float]:
        """Gradient of each layer at some positions."""
        return [float(size) for size in self._gradient_bytes[self._class_of[list(positions)]]]

    def weight_bytes(self, positions: Sequence[int]) -> list[float]:
        """Weights of each layer at some positions, as all-gathered."""
        return [float(size) for size in self._weight_bytes[self._class_of[list(positions)]]]

    @cached_property
    def working_bytes(self) -> Array:
        """Temporary memory of full recomputation, by micro-batch."""
        size = working_bytes(self.parts, self.whole.sharding)
        return np.asarray(size.at(self.micro_batches), dtype=float)

    @cached_property
    def loss_working_bytes(self) -> Array:
        """Temporary memory of losses, by micro-batch."""
        placeholder = output_placeholder_bytes(self.whole, self.tp)
        loss = self._habits.loss
        size = loss.peak_bytes(self.parts, self.whole.sharding, self.micro_batches, placeholder)
        return np.asarray(size, dtype=float)

    @cached_property
    def placeholder_bytes(self) -> float:
        """Unused weight gradients of programs that accumulate gradients in GEMMs."""
        if not has_placeholders(self.whole):
            return 0.0
        width = self.whole.precision.weight_bytes
        graph = self.whole.sharding.graph
        return placeholder_bytes(graph, self._kinds, self._class_of.tolist(), 1, width)

    @cached_property
    def _habits(self) -> KeepingHabits:
        return habits_of(self.whole.plan, self.whole.framework)

    def _sums(self, counts: Array) -> Sums:
        return Sums(
            counts @ self._forward,
            counts @ self._forward_exchange,
            np.tensordot(counts, self.backward_by_layer, 1),
            counts @ self._backward_exchange,
            np.tensordot(counts, self._kept_bytes, 1),
            counts @ self._whole_bytes,
            counts @ self._forward_flops,
            float(counts @ self._parameters),
            float(counts @ self._trainable_parameters),
            float(counts @ self._gradient_bytes),
            float(counts @ self._weight_bytes),
        )

    def _evaluate(self, kinds: Sequence[ShardedLayer]) -> None:
        seconds = LayerArrays(self.whole, kinds, self.efficiency).seconds(self.micro_batches)
        self._forward, backward = seconds[FORWARD], seconds[BACKWARD]
        self._forward_exchange = self._exchanges([part.tensor_forward for part in kinds])
        self._backward_exchange = self._exchanges([part.tensor_backward for part in kinds])
        modes = self._kept(kinds)
        again = np.array([kept.again for kept in modes], dtype=float).T
        forward_again = (self._forward + self._forward_exchange)[:, :, None] * again[:, None, :]
        self.backward_by_layer = backward[:, :, None] + forward_again
        self._kept_bytes = np.array(
            [[_at(size, self.micro_batches) for size in kept.sizes] for kept in modes]
        ).transpose(1, 2, 0)
        wait = self.whole.framework.whole_tensors_wait
        self._whole_bytes = wait * np.array(
            [_at(whole_bytes(part, self.tp), self.micro_batches) for part in kinds]
        )
        self.largest_whole_bytes = self._whole_bytes.max(axis=0)
        self._forward_flops = np.array(
            [_at(part.profile.forward_flops, self.micro_batches) for part in kinds]
        )
        width = self.whole.precision.operand_bytes
        self._parameters = np.array([float(part.profile.parameters) for part in kinds])
        self._trainable_parameters = np.array(
            [float(part.profile.trainable_parameters) for part in kinds]
        )
        self._gradient_bytes = np.array(
            [float(part.profile.gradient_bytes.fixed) for part in kinds]
        )
        self._weight_bytes = self._parameters * width

    def _kept(self, kinds: Sequence[ShardedLayer]) -> list[KeptActivations]:
        """Kept bytes of each kind and whether it is recomputed, by recomputation mode."""
        sharding, tokens = self.whole.sharding, self.sequence_parallel
        return [
            kept_activations(
                sharding, kinds, mode, self.tp, tokens, self._first, habits=self._habits
            )
            for mode in MODES
        ]

    def _exchanges(self, messages: Sequence[Sequence[ShardMessage]]) -> Array:
        """Seconds of each kind's messages among tensor-parallel devices, by micro-batch."""
        result = np.zeros((len(messages), self.micro_batches.size))
        if self.tp == 1:
            return result
        whole = self.whole
        group = Layout(self.tp, 1, 1, 1, 1, whole.cluster.devices_per_node).tensor
        library = whole.framework.library(whole.cluster.device)
        for row, own in zip(result, messages, strict=True):
            for message in own:
                cost = collective_cost(message.operation, group, whole.cluster, library)
                row += cost.seconds(_at(message.size, self.micro_batches))
        return result


def _at(size: Affine, micro_batches: Array) -> Array:
    return np.broadcast_to(np.asarray(size.at(micro_batches), dtype=float), micro_batches.shape)
