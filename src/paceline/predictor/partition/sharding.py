"""One device's share of each layer under tensor, expert and context parallelism.

Degrees are numbers or NumPy arrays, so that the scheduler and the vectorised search share the
equations.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from paceline.predictor.partition.device_share import divided_profile, routed_expert_share
from paceline.predictor.partition.tensor_parallel import Division, Role, Transfer, divide
from paceline.workload.cost import Affine, GraphProfile, LayerProfile, Number, Shape
from paceline.workload.graph import Graph, Node
from paceline.workload.ops import Attention, MixtureOfExperts, RelativeAttention
from paceline.workload.ops.dimensions import elements
from paceline.workload.precision import Precision, precision


@dataclass(frozen=True)
class ShardMessage:
    """One message of a layer, with its size as a function of the batch.

    ``copies`` is how often each element is in it (once for each expert of a token).
    """

    operation: str
    size: Affine
    copies: int = 1


@dataclass(frozen=True)
class ContextTensors:
    """Inputs and output of attention in bytes on one of ``tp`` devices, by batch."""

    queries: Affine
    keys_values: Affine
    result: Affine
    kv_heads: int
    causal: bool
    tp: Number


@dataclass(frozen=True)
class ShardedLayer:
    """One device's share of a layer, and its messages within the replica.

    ``tensor_forward`` and ``tensor_backward`` are messages among tensor-parallel devices,
    ``expert_forward`` and ``expert_backward`` among expert-parallel ones, ``expert_tensor`` among
    the devices of one expert in each pass, ``rows`` among replicas that divide an embedding table
    in each pass. ``context`` are the tensors that context-parallel
    devices exchange. ``is_expert``: most of its weights are experts, which fewer replicas share.
    """

    profile: LayerProfile
    tensor_forward: tuple[ShardMessage, ...] = ()
    tensor_backward: tuple[ShardMessage, ...] = ()
    expert_forward: tuple[ShardMessage, ...] = ()
    expert_backward: tuple[ShardMessage, ...] = ()
    expert_tensor: tuple[ShardMessage, ...] = ()
    rows: tuple[ShardMessage, ...] = ()
    context: ContextTensors | None = None
    is_expert: bool = False

    @property
    def expert_share(self) -> float:
        """Share of expert parameters: all but the router's in a layer of experts."""
        if not self.is_expert:
            return 0.0
        held = (*self.profile.tensors, *self.profile.frozen_tensors)
        router = sum(size for name, size in held if name == "router")
        return 1.0 - float(router) / float(self.profile.parameters)


class Sharding:
    """A graph at one sequence length and precision, ready to be divided by any degrees."""

    def __init__(self, graph: Graph, sequence: int | None, number_format: str | Precision) -> None:
        self.graph = graph
        self.precision: Precision = precision(number_format)
        self.profile: GraphProfile = graph.profile(sequence, self.precision)
        self._by_name = {layer.name: layer for layer in self.profile.layers}

    @property
    def divides(self) -> bool:
        """Whether tensor parallelism divides any layer (it cannot divide recorded ones)."""
        return any(division.role is not Role.WHOLE for division in divide(self.graph))

    def layers(
        self,
        tp: Number = 1,
        ep: Number = 1,
        sequence_parallel: bool = False,
        positions: Sequence[int] | None = None,
        etp: int | None = None,
    ) -> tuple[ShardedLayer, ...]:
        """One entry per node, in the order of the graph, or for some positions.

        ``etp`` is the tensor-parallel degree of experts; None for ``tp``.
        """
        folded = etp is not None and etp != tp
        tokens_divided = sequence_parallel and not (isinstance(tp, int) and tp == 1)
        if isinstance(tp, int) and tp == 1:
            divisions: tuple[Division, ...] = (Division(Role.WHOLE),) * len(self.graph.nodes)
        else:
            divisions = divide(self.graph, sequence_parallel or folded, folded)
        own_etp = etp if folded else None
        wanted = range(len(divisions)) if positions is None else positions
        return tuple(
            self._layer(index, divisions[index], tp, ep, own_etp, tokens_divided)
            for index in wanted
        )

    def role(self, position: int, sequence_parallel: bool) -> Role:
        """How tensor parallelism divides a layer."""
        return divide(self.graph, sequence_parallel)[position].role

    def output_bytes(self, name: str) -> Affine:
        """Bytes of one tensor between layers; 0 for inputs of the graph."""
        layer = self._by_name.get(name)
        if layer is None:
            return Affine()
        return Affine(0, elements(layer.output_shape) * self.precision.activation_bytes)

    def output_shape(self, name: str) -> Shape:
        """Shape of one sample of the result of a layer."""
        return self._by_name[name].output_shape

    def _layer(
        self,
        index: int,
        division: Division,
        tp: Number,
        ep: Number,
        etp: int | None,
        tokens_divided: bool,
    ) -> ShardedLayer:
        """One layer; ``etp`` is None if experts are divided as layers are."""
        node, profile = self.graph.nodes[index], self.profile.layers[index]
        sharded = divided_profile(profile, division.role, tp, tokens_divided, self._mix(index))
        expert_messages: tuple[ShardMessage, ...] = ()
        expert_tensor: tuple[ShardMessage, ...] = ()
        if isinstance(node.op, MixtureOfExperts):
            # ``sharded`` has 1/tp of each expert; the share is 1/(ep x etp).
            narrower = 1 if etp is None else etp / tp
            sharded = routed_expert_share(sharded, node.op, ep * narrower)
            routed = self.output_bytes(node.inputs[0])
            share = tp if tokens_divided else 1
            size = Affine(0, node.op.top_k * routed.per_sample / share)
            expert_messages = (ShardMessage("all_to_all", size, node.op.top_k),) * 2
            if etp is not None and etp > 1:
                whole = Affine(0, etp * size.per_sample)
                expert_tensor = (
                    ShardMessage("all_gather", whole),
                    ShardMessage("reduce_scatter", whole),
                )
        return ShardedLayer(
            sharded,
            tensor_forward=self._messages(division.forward),
            tensor_backward=self._messages(division.backward),
            expert_forward=expert_messages,
            expert_backward=expert_messages,
            expert_tensor=expert_tensor,
            context=self._context(node, tp),
            is_expert=bool(expert_messages),
        )

    def _context(self, node: Node, tp: Number) -> ContextTensors | None:
        op = node.op
        if not isinstance(op, Attention | RelativeAttention):
            return None
        query, *others = (self.output_bytes(name).per_sample / tp for name in node.inputs[:3])
        return ContextTensors(
            Affine(0, query),
            Affine(0, sum(others)),
            Affine(0, self.output_bytes(node.name).per_sample / tp),
            op.kv_heads if isinstance(op, Attention) else op.heads,
            isinstance(op, RelativeAttention) or op.causal,
            tp,
        )

    def _messages(self, transfers: tuple[Transfer, ...]) -> tuple[ShardMessage, ...]:
        return tuple(ShardMessage(str(t.operation), self.output_bytes(t.tensor)) for t in transfers)

    def _mix(self, index: int) -> Number:
        """Input elements over input plus output elements of a node."""
        node, profile = self.graph.nodes[index], self.profile.layers[index]
        read = sum(self.output_bytes(name).per_sample for name in node.inputs)
        written = elements(profile.output_shape) * self.precision.activation_bytes
        return read / (read + written)
