"""Activations kept for backward, and recomputation."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from paceline.predictor.memory.loss_memory import TORCH_LOSS, LossMemory
from paceline.predictor.memory.recomputed_modules import (
    ATTENTIONS,
    kept_share,
    module_activations,
)
from paceline.predictor.partition.sharding import ContextTensors, ShardedLayer, Sharding
from paceline.predictor.partition.tensor_parallel import Role
from paceline.predictor.plan.plan_choices import ContextForm, Module, Recompute
from paceline.workload.blocks import part_of
from paceline.workload.cost import Affine, Number, total
from paceline.workload.graph import Graph
from paceline.workload.ops import Attention, CrossEntropy, Linear, MixtureOfExperts

_WIDE_BYTES = 4


@dataclass(frozen=True)
class KeptActivations:
    """Bytes kept from forward to backward, and whether forward is recomputed, by layer."""

    sizes: tuple[Affine, ...]
    again: tuple[bool, ...]


@dataclass(frozen=True)
class KeepingHabits:
    """What a program keeps besides the tensors that autograd needs; see `FrameworkProfile`."""

    copies_keys_values: bool = False
    packed_projection: bool = False
    loss: LossMemory = TORCH_LOSS


NO_HABITS = KeepingHabits()
"""Only what autograd needs, and the loss of PyTorch."""


def kept_activations(
    sharding: Sharding,
    layers: Sequence[ShardedLayer],
    recompute: Recompute,
    tp: Number = 1,
    sequence_parallel: bool = False,
    positions: Sequence[int] | None = None,
    every: int = 1,
    habits: KeepingHabits = NO_HABITS,
    modules: tuple[Module, ...] = (),
) -> KeptActivations:
    """Kept activations of one device and micro-batch, for all layers or some positions.

    ``selective`` keeps the inputs of attention instead of its scores, which fused attention never
    writes (Korthikanti et al. 2022). ``full`` keeps only the input of each numbered block, or of
    one in ``every``, divided by tokens with sequence parallelism. ``op`` keeps the input of each
    block and the results of fused attention, experts and every second linear layer (torchtitan's
    selective op). With ``modules`` selective recomputation applies to these instead of scores.
    """
    sizes = [layer.profile.activation_bytes for layer in layers]
    again = [False] * len(layers)
    nodes = sharding.graph.nodes
    indices = range(len(nodes)) if positions is None else positions
    if modules:
        kept = module_activations(sharding, modules)
        for index, position in enumerate(indices):
            share = kept_share(sharding, position, tp, sequence_parallel)
            again[index] = kept.again[position]
            sizes[index] = Affine(sizes[index].fixed, kept.sizes[position] * share)
    for index, position in enumerate(indices):
        if isinstance(nodes[position].op, CrossEntropy):
            sizes[index] = habits.loss.kept_bytes(sharding, position, layers[index])
        elif isinstance(nodes[position].op, Attention):
            sizes[index] += _projection_copies(sharding.graph, position, layers[index], habits)
    if recompute is Recompute.SELECTIVE and not modules:
        for index, position in enumerate(indices):
            if nodes[position].op.kind in ATTENTIONS:
                again[index] = True
                sizes[index] = _selective(sharding, position, sizes[index], tp)
    if recompute is Recompute.FULL:
        share = tp if sequence_parallel else 1
        # torchtitan's layer frequency: every n-th block, starting with the n-th.
        chosen = numbered_parts(sharding.graph)[every - 1 :: every]
        for index, position in enumerate(indices):
            if part_of(nodes[position].name) in chosen:
                again[index] = True
                sizes[index] = Affine(0, _entering_bytes(sharding, position) / share)
    if recompute is Recompute.OPERATION:
        share = tp if sequence_parallel else 1
        for index, position in enumerate(indices):
            if part_of(nodes[position].name):
                own = _kept_result(sharding, position, tp, sequence_parallel)
                again[index] = own is None
                entering = Affine(0, _entering_bytes(sharding, position) / share)
                if nodes[position].op.kind != "moe":
                    sizes[index] = entering if own is None else entering + own
    return KeptActivations(tuple(sizes), tuple(again))


def _selective(sharding: Sharding, position: int, plain: Affine, tp: Number) -> Affine:
    """Kept bytes of attention whose scores are recomputed.

    Fused attention writes no scores: only its log-sum-exp per row is not kept.
    """
    op = sharding.graph.nodes[position].op
    if isinstance(op, Attention) and op.fused:
        rows = sharding.output_shape(sharding.graph.nodes[position].name)[0]
        return plain + Affine(0, -op.heads * rows * _WIDE_BYTES / tp)
    return _smaller(plain, Affine(0, _input_bytes(sharding, position) / tp))


def _projection_copies(
    graph: Graph, position: int, layer: ShardedLayer, habits: KeepingHabits
) -> Affine:
    """Second copies of queries, keys or values if they are views of a fused QKV projection.

    Keys and values are copied out of the projection that queries are a view of (nanotron), or
    rotary positions copy queries and keys while values are a view of it (Megatron Core).
    """
    op = graph.nodes[position].op
    if layer.context is None or not isinstance(op, Attention):
        return Affine()
    copied = Affine()
    if habits.copies_keys_values and op.fused and op.kv_heads == op.heads:
        copied += layer.context.keys_values
    if habits.packed_projection and _is_rotated(graph, graph.nodes[position].inputs[0]):
        half = Affine(0, layer.context.keys_values.per_sample / 2)
        copied += layer.context.queries + half
    return copied


@lru_cache(maxsize=4096)
def _is_rotated(graph: Graph, name: str) -> bool:
    """Whether a tensor is the rotated result of a linear layer."""
    if name in graph.inputs:
        return False
    node = graph.node(name)
    return node.op.kind == "rotary" and isinstance(graph.node(node.inputs[0]).op, Linear)


def _kept_result(
    sharding: Sharding, position: int, tp: Number, sequence_parallel: bool
) -> Affine | None:
    """Kept result of a layer under ``op`` recomputation; None if it is recomputed."""
    node = sharding.graph.nodes[position]
    size = sharding.output_bytes(node.name).per_sample
    if isinstance(node.op, Linear):
        # torchtitan's selective op saves every second matmul: the first, the third, ...
        if _linears_before(sharding.graph)[position] % 2:
            return None
        role = sharding.role(position, sequence_parallel)
        return Affine(0, size / tp if sequence_parallel or role is Role.OUTPUTS else size)
    if isinstance(node.op, Attention) and node.op.fused:
        return Affine(0, size / tp)
    return Affine() if isinstance(node.op, MixtureOfExperts) else None


@lru_cache(maxsize=64)
def _linears_before(graph: Graph) -> tuple[int, ...]:
    """Number of earlier linear layers in the same block, by node."""
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
    """Gathered tensors that one layer reduce-scatters among ``tp`` devices, plus one share.

    Both are temporary, but their memory is free only when the device catches up with the host.
    """
    # Only nanotron-like frameworks hold them (``whole_tensors_wait``,
    # docs/explanation/predictor.md).
    scattered = (each.size for each in layer.tensor_forward if each.operation == "reduce_scatter")
    return total(Affine(0, (1 + 1 / tp) * size.per_sample) for size in scattered)


def working_bytes(
    layers: Sequence[ShardedLayer], sharding: Sharding, to_attention: bool = False
) -> Affine:
    """Activations of the largest block: temporary memory of full recomputation.

    With ``to_attention`` only those up to its last attention, which are left when backward
    arrives there. Blocks with equal layers (the same objects) are evaluated once.
    """
    found = _numbered_blocks(sharding.graph)
    if to_attention:
        found = tuple(_to_attention(sharding.graph, block) for block in found)
    distinct = {tuple(id(layers[position]) for position in block): block for block in found}
    sizes = [
        total(layers[position].profile.activation_bytes for position in block)
        for block in distinct.values()
    ]
    return max(sizes, key=lambda size: _magnitude(size.per_sample), default=Affine())


def _to_attention(graph: Graph, block: tuple[int, ...]) -> tuple[int, ...]:
    last = max((i for i in block if isinstance(graph.nodes[i].op, Attention)), default=-1)
    return tuple(position for position in block if position <= last)


@lru_cache(maxsize=64)
def _numbered_blocks(graph: Graph) -> tuple[tuple[int, ...], ...]:
    """Positions of the layers of each numbered block."""
    found: dict[str, list[int]] = {}
    for position, node in enumerate(graph.nodes):
        found.setdefault(part_of(node.name), []).append(position)
    return tuple(tuple(own) for name, own in found.items() if name)


def context_bytes(tensors: ContextTensors, form: ContextForm, cp: int, width: int) -> Affine:
    """Temporary memory of attention with ``cp`` context-parallel devices.

    A ring holds keys and values in use and in flight, gathering holds all of them and their
    gradients, and both hold the fp32 sum of results; Ulysses holds all four tensors once more.
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


def _input_bytes(sharding: Sharding, index: int) -> Number:
    names = sharding.graph.nodes[index].inputs
    return sum((sharding.output_bytes(name).per_sample for name in names), 0)


def _entering_bytes(sharding: Sharding, index: int) -> Number:
    """Bytes of tensors that enter a block at this node and at no earlier one."""
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
    """A scalar to compare sizes by; arrays of degrees scale all sizes equally."""
    return float(number.max()) if hasattr(number, "max") else float(number)
