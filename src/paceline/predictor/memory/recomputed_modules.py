"""Activations kept if modules of each block are recomputed, as Megatron-LM recomputes them.

A recomputed module keeps the tensors that enter it. Norms and the up-projections of latent
attention also discard their outputs, which their readers compute again
(``--recompute-granularity selective --recompute-modules``).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from paceline.predictor.partition.sharding import Sharding
from paceline.predictor.partition.tensor_parallel import Role
from paceline.predictor.plan.plan_choices import Module
from paceline.workload.blocks import part_of
from paceline.workload.cost import Affine, Number
from paceline.workload.costing import AS_OPERAND
from paceline.workload.graph import Graph, Node
from paceline.workload.ops import MixtureOfExperts

ATTENTIONS = ("attention", "relative_attention", "additive_attention")
_NORMS = ("layer_norm", "rms_norm")
_MLPS = ("mlp.", "feed_forward.", "ffn.")
_EXPERTS = ("shared_expert", "shared_gate", "add_shared", "experts_latent")
_LATENTS = ("query_down", "latent_down", "latent", "key_rotary")
"""Nodes of latent attention that are not recomputed: the latents and what they are made of."""
_DISCARDING = (Module.LAYER_NORM, Module.LATENT_PROJECTION)


@dataclass(frozen=True)
class ModuleActivations:
    """Bytes per sample of undivided layers that stay kept, and whether a layer is recomputed."""

    sizes: tuple[Number, ...]
    again: tuple[bool, ...]


def has_module(graph: Graph, module: Module) -> bool:
    """Whether a graph has layers of a module."""
    if module is Module.MOE_ACTIVATION:
        return any(isinstance(node.op, MixtureOfExperts) for node in graph.nodes)
    return module in _modules(graph, (module,)).values()


def kept_share(sharding: Sharding, position: int, tp: Number, sequence_parallel: bool) -> Number:
    """Share of a layer's kept activations on one of ``tp`` devices."""
    if isinstance(tp, int) and tp == 1:
        return 1.0
    divided = sharding.role(position, sequence_parallel) in (Role.INPUTS, Role.FEATURES)
    return 1.0 / tp if divided or sequence_parallel else 1.0


@lru_cache(maxsize=64)
def module_activations(sharding: Sharding, modules: tuple[Module, ...]) -> ModuleActivations:
    """Kept bytes of all layers with ``modules`` recomputed."""
    graph = sharding.graph
    chosen = _modules(graph, modules)
    position_of = {node.name: position for position, node in enumerate(graph.nodes)}

    def is_discarded(name: str) -> bool:
        return chosen.get(position_of.get(name, -1)) in _DISCARDING

    usual: set[str] = set()
    held: set[str] = set()
    sizes: list[Number] = []
    for position, node in enumerate(graph.nodes):
        profile = sharding.profile.layers[position]
        own = profile.activation_bytes.per_sample - _unseen(profile.kept_tensors, usual)
        if position in chosen:
            entering = [
                (name, sharding.output_bytes(name).per_sample)
                for name in node.inputs
                if chosen.get(position_of.get(name, -1)) is not chosen[position]
                and not is_discarded(name)
            ]
            sizes.append(_unseen(entering, held))
            continue
        tensors = [
            (name, size)
            for name, size in profile.kept_tensors
            if not is_discarded(name.removesuffix(AS_OPERAND))
        ]
        if Module.MOE_ACTIVATION in modules and isinstance(node.op, MixtureOfExperts):
            own = own - _expert_outputs(sharding, node, node.op)
        sizes.append(_unseen(tensors, held) + own)
    return ModuleActivations(tuple(sizes), tuple(i in chosen for i in range(len(graph.nodes))))


def transient_bytes(
    sharding: Sharding, modules: Sequence[Module], tp: Number, sequence_parallel: bool
) -> Affine:
    """Activations of the largest module of a block while it is recomputed."""
    largest: Number = 0.0
    for module in modules:
        without = module_activations(sharding, (module,)).sizes
        blocks: dict[str, Number] = {}
        for position, node in enumerate(sharding.graph.nodes):
            usual = sharding.profile.layers[position].activation_bytes.per_sample
            share = kept_share(sharding, position, tp, sequence_parallel)
            part = part_of(node.name)
            blocks[part] = blocks.get(part, 0.0) + (usual - without[position]) * share
        largest = max(largest, *blocks.values())
    return Affine(0, largest)


def _unseen(tensors: Sequence[tuple[str, Number]], seen: set[str]) -> Number:
    """Bytes of tensors that are not in ``seen``, which then has them."""
    size: Number = 0
    for name, own in tensors:
        if name not in seen:
            seen.add(name)
            size = size + own
    return size


def _expert_outputs(sharding: Sharding, node: Node, op: MixtureOfExperts) -> Number:
    """Saved outputs of the activation of experts, inputs of their last GEMM."""
    width, saved = sharding.precision.activation_bytes, sharding.precision.saved_operand_bytes
    tokens = sharding.output_shape(node.name)[0]
    return tokens * op.top_k * op.hidden * (width if saved is None else saved)


def _modules(graph: Graph, modules: Sequence[Module]) -> dict[int, Module]:
    """The recomputed module of each layer that is in one, by position."""
    return dict(_layers_of(graph, modules))


def _layers_of(graph: Graph, modules: Sequence[Module]) -> Iterator[tuple[int, Module]]:
    latent = {part_of(n.name) for n in graph.nodes if n.name.endswith(".latent_down")}
    before: set[str] = set()
    for position, node in enumerate(graph.nodes):
        part = part_of(node.name)
        if not part:
            continue
        name = node.name[len(part) + 1 :]
        own = _module_of(node, name)
        leaf = name.rpartition(".")[2]
        is_projection = part in latent and part not in before and name.startswith("attention.")
        if node.op.kind in ATTENTIONS:
            before.add(part)
        elif is_projection and leaf not in _LATENTS:
            own = (Module.LATENT_PROJECTION,)
        found = next((module for module in own if module in modules), None)
        if found is not None:
            yield position, found


def _module_of(node: Node, name: str) -> tuple[Module, ...]:
    """Modules that contain a node, the smallest last, by its operation and its name in a block."""
    if node.op.kind in ATTENTIONS:
        return (Module.CORE_ATTENTION,)
    if node.op.kind in _NORMS and "." not in name:
        return (Module.LAYER_NORM,)
    if isinstance(node.op, MixtureOfExperts) or name.startswith(_EXPERTS):
        shared = name.startswith("shared_expert")
        return (Module.MOE, Module.SHARED_EXPERTS) if shared else (Module.MOE,)
    return (Module.MLP,) if name.startswith(_MLPS) else ()
