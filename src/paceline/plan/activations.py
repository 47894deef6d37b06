"""What each layer keeps for backward, and what is computed again instead."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from paceline.plan.choices import ContextForm, Recompute
from paceline.plan.sharding import ContextTensors, ShardedLayer, Sharding
from paceline.plan.tensor_parallel import Role
from paceline.workload.blocks import part_of
from paceline.workload.cost import Affine, Number, total
from paceline.workload.graph import Graph
from paceline.workload.ops import Attention, CrossEntropy, Linear, MixtureOfExperts, Op

_WIDE_BYTES = 4
_ATTENTIONS = ("attention", "relative_attention", "additive_attention")


@dataclass(frozen=True)
class KeptActivations:
    """Per layer: bytes kept from forward to backward, and whether its forward runs twice."""

    sizes: tuple[Affine, ...]
    again: tuple[bool, ...]


def kept_activations(
    sharding: Sharding,
    layers: Sequence[ShardedLayer],
    recompute: Recompute,
    tp: Number = 1,
    sequence_parallel: bool = False,
    positions: Sequence[int] | None = None,
    every: int = 1,
    copies_keys_values: bool = False,
) -> KeptActivations:
    """What one device keeps of one micro-batch, for all layers or those at some positions.

    ``selective`` keeps the inputs of attention instead of its scores, which fused attention
    never writes; ``full`` keeps the input of each numbered block, or of one in ``every``, (divided
    by tokens with sequence parallelism) and nothing in it; ``op`` keeps the input of each block
    and, in it, the results of fused attention, experts and every second linear layer. With
    ``copies_keys_values`` attention without groups of queries keeps these twice.
    """
    sizes = [layer.profile.activation_bytes for layer in layers]
    again = [False] * len(layers)
    nodes = sharding.graph.nodes
    places = range(len(nodes)) if positions is None else positions
    if copies_keys_values:
        for index, place in enumerate(places):
            sizes[index] += _copied_keys_values(nodes[place].op, layers[index])
    if recompute is Recompute.SELECTIVE:
        for index, place in enumerate(places):
            op = nodes[place].op
            if op.kind in _ATTENTIONS and not getattr(op, "fused", False):
                again[index] = True
                inputs = _input_bytes(sharding, place)
                sizes[index] = _smaller(sizes[index], Affine(0, inputs / tp))
    if recompute is Recompute.FULL:
        share = tp if sequence_parallel else 1
        chosen = numbered_parts(sharding.graph)[every - 1 :: every]
        for index, place in enumerate(places):
            if part_of(nodes[place].name) in chosen:
                again[index] = True
                sizes[index] = Affine(0, _entering_bytes(sharding, place) / share)
    if recompute is Recompute.OPERATION:
        share = tp if sequence_parallel else 1
        for index, place in enumerate(places):
            if part_of(nodes[place].name):
                own = _kept_result(sharding, place, tp, sequence_parallel)
                again[index] = own is None
                entering = Affine(0, _entering_bytes(sharding, place) / share)
                if nodes[place].op.kind != "moe":
                    sizes[index] = entering if own is None else entering + own
    return KeptActivations(tuple(sizes), tuple(again))


def _copied_keys_values(op: Op, layer: ShardedLayer) -> Affine:
    """Keys and values of attention whose queries are a view of what projected all three."""
    ungrouped = isinstance(op, Attention) and op.fused and op.kv_heads == op.heads
    return layer.context.keys_values if ungrouped and layer.context else Affine()


def _kept_result(
    sharding: Sharding, place: int, tp: Number, sequence_parallel: bool
) -> Affine | None:
    """What one device keeps of a layer's result where operations are chosen; None of others."""
    node = sharding.graph.nodes[place]
    size = sharding.output_bytes(node.name).per_sample
    if isinstance(node.op, Linear):
        if _linears_before(sharding.graph)[place] % 2:
            return None
        role = sharding.role(place, sequence_parallel)
        return Affine(0, size / tp if sequence_parallel or role is Role.OUTPUTS else size)
    if isinstance(node.op, Attention) and node.op.fused:
        return Affine(0, size / tp)
    return Affine() if isinstance(node.op, MixtureOfExperts) else None


@lru_cache(maxsize=64)
def _linears_before(graph: Graph) -> tuple[int, ...]:
    """How many linear layers of the same block come before each node."""
    seen: Counter[str] = Counter()
    before = []
    for node in graph.nodes:
        part = part_of(node.name)
        before.append(seen[part])
        seen[part] += isinstance(node.op, Linear)
    return tuple(before)


@lru_cache(maxsize=64)
def numbered_parts(graph: Graph) -> tuple[str, ...]:
    """Names of the numbered blocks, in the order of the network."""
    return tuple(dict.fromkeys(part for node in graph.nodes if (part := part_of(node.name))))


def whole_bytes(layer: ShardedLayer, tp: Number) -> Affine:
    """Whole tensors whose sums one layer scatters among ``tp`` devices, with a device's share.

    Both are of use for a moment only, but their memory is not free until the device has caught up
    with the host.
    """
    scattered = (each.size for each in layer.tensor_forward if each.operation == "reduce_scatter")
    return total(Affine(0, (1 + 1 / tp) * size.per_sample) for size in scattered)


def working_bytes(layers: Sequence[ShardedLayer], sharding: Sharding) -> Affine:
    """Activations of the largest block: what full recomputation holds for a moment."""
    totals: dict[str, Affine] = {}
    for node, layer in zip(sharding.graph.nodes, layers, strict=True):
        part = part_of(node.name)
        totals[part] = totals.get(part, Affine()) + layer.profile.activation_bytes
    totals.pop("", None)
    if not totals:
        return Affine()
    return max(totals.values(), key=lambda size: _magnitude(size.per_sample))


def loss_working_bytes(
    layers: Sequence[ShardedLayer], sharding: Sharding, in_place: bool = False
) -> Affine:
    """What the end of forward holds for a moment beside the log-probabilities that losses keep.

    The scores as the last product wrote them, their gradient in 32 bits, and that gradient as
    the product reads it where that is shorter. Losses that work ``in_place`` hold the scores as
    written and in 32 bits, and gradients take the same places.
    """
    width = sharding.precision.activation_bytes
    is_short = width < _WIDE_BYTES
    if in_place:
        held = width + (_WIDE_BYTES if is_short else 0)
    else:
        held = width + _WIDE_BYTES + (width if is_short else 0)
    return total(
        Affine(0, held / _WIDE_BYTES * layers[place].profile.activation_bytes.per_sample)
        for place in _losses(sharding.graph)
    )


def context_bytes(tensors: ContextTensors, form: ContextForm, cp: int, width: int) -> Affine:
    """What attention holds for a moment where ``cp`` devices share out the tokens.

    A ring the keys and values in use and on their way, gathering all of them and their
    gradients, both the sum of results in 32 bits; ulysses all four tensors once more.
    """
    passed, result = tensors.keys_values.per_sample, tensors.result.per_sample
    summed = _WIDE_BYTES / width * result
    match form:
        case ContextForm.GATHER:
            return Affine(0, 2 * cp * passed + summed)
        case ContextForm.ULYSSES:
            return Affine(0, tensors.queries.per_sample + passed + result)
        case ContextForm.RING | ContextForm.RING_IN_ORDER:
            return Affine(0, 2 * passed + summed)


@lru_cache(maxsize=64)
def _losses(graph: Graph) -> tuple[int, ...]:
    """Positions of the losses."""
    return tuple(i for i, node in enumerate(graph.nodes) if isinstance(node.op, CrossEntropy))


def _input_bytes(sharding: Sharding, index: int) -> Number:
    names = sharding.graph.nodes[index].inputs
    return sum((sharding.output_bytes(name).per_sample for name in names), 0)


def _entering_bytes(sharding: Sharding, index: int) -> Number:
    """Bytes of tensors that enter a block at this node and at no earlier node of it."""
    nodes = sharding.graph.nodes
    first, part = index, part_of(nodes[index].name)
    while first > 0 and part_of(nodes[first - 1].name) == part:
        first -= 1
    inside = {node.name for node in nodes[first:index]}
    seen = {name for node in nodes[first:index] for name in node.inputs} | inside
    entering = set(nodes[index].inputs) - seen
    return sum((sharding.output_bytes(name).per_sample for name in entering), 0)


def _smaller(a: Affine, b: Affine) -> Affine:
    return b if _magnitude(b.per_sample) < _magnitude(a.per_sample) else a


def _magnitude(number: Number) -> float:
    """A number by which sizes are compared; arrays of degrees scale all of them alike."""
    return float(number.max()) if hasattr(number, "max") else float(number)
