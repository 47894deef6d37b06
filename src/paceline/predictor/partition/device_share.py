"""One device's share of a layer's costs, by its role in tensor or expert parallelism."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from paceline.predictor.partition.tensor_parallel import Role
from paceline.workload.cost import Affine, Gemm, LayerProfile, Number
from paceline.workload.ops import MixtureOfExperts

Side = Literal["m", "n", "k", "count"]

_GEMM_SIDES: dict[Role, tuple[Side, Side, Side]] = {
    Role.OUTPUTS: ("m", "m", "k"),
    Role.INPUTS: ("k", "n", "m"),
    Role.FEATURES: ("count", "count", "count"),
    Role.EXPERTS: ("count", "count", "count"),
}
"""GEMM dimension that is divided in forward, weight gradient and input gradient."""


def divided_profile(
    profile: LayerProfile, role: Role, tp: Number, tokens_divided: bool, read_share: Number
) -> LayerProfile:
    """The share of a layer on one of ``tp`` devices.

    ``tokens_divided``: sequence parallelism, which divides the remaining layers by tokens.
    ``read_share`` is the input share of the layer's activation traffic.
    """
    if isinstance(tp, int) and tp == 1:
        return profile
    weights = 1.0 if role is Role.WHOLE else 1.0 / tp
    undivided = 1.0 / tp if tokens_divided else 1.0
    work = undivided if role is Role.WHOLE else 1.0 / tp
    moved = _moved_share(role, tp, read_share, undivided)
    kept = 1.0 / tp if role in (Role.INPUTS, Role.FEATURES) else undivided
    sides = _GEMM_SIDES.get(role)
    return replace(
        profile,
        tensors=_shared_tensors(profile.tensors, weights),
        frozen_tensors=_shared_tensors(profile.frozen_tensors, weights),
        gradient_bytes=_counts(_scaled(profile.gradient_bytes, weights)),
        forward_flops=_scaled(profile.forward_flops, work),
        weight_gradient_flops=_scaled(profile.weight_gradient_flops, work),
        input_gradient_flops=_scaled(profile.input_gradient_flops, work),
        forward_bytes=_scaled(profile.forward_bytes, moved, weights),
        backward_bytes=_scaled(profile.backward_bytes, moved, weights),
        activation_bytes=_scaled(profile.activation_bytes, kept, weights),
        forward_gemms=_divided(profile.forward_gemms, sides and sides[0], tp),
        weight_gradient_gemms=_divided(profile.weight_gradient_gemms, sides and sides[1], tp),
        input_gradient_gemms=_divided(profile.input_gradient_gemms, sides and sides[2], tp),
    )


def divided_table(profile: LayerProfile, holders: int) -> LayerProfile:
    """The share of an embedding table that ``holders`` devices divide: all work, fewer rows."""
    return replace(
        profile,
        tensors=_shared_tensors(profile.tensors, 1.0 / holders),
        frozen_tensors=_shared_tensors(profile.frozen_tensors, 1.0 / holders),
    )


def routed_expert_share(profile: LayerProfile, op: MixtureOfExperts, ep: Number) -> LayerProfile:
    """The share of a mixture of experts on one of ``ep`` devices.

    It holds 1/``ep`` of the experts and serves tokens of all ``ep`` devices: fewer, larger GEMMs
    with the same FLOP.
    """
    if isinstance(ep, int) and ep == 1:
        return profile
    held = (*profile.tensors, *profile.frozen_tensors)
    router = sum(size for name, size in held if _stays(name))
    share = (router + (profile.parameters - router) / ep) / profile.parameters
    return replace(
        profile,
        tensors=_experts_of(profile.tensors, ep),
        frozen_tensors=_experts_of(profile.frozen_tensors, ep),
        gradient_bytes=_counts(_scaled(profile.gradient_bytes, share)),
        forward_bytes=_scaled(profile.forward_bytes, 1.0, share),
        backward_bytes=_scaled(profile.backward_bytes, 1.0, share),
        forward_gemms=_regrouped(profile.forward_gemms, ep),
        weight_gradient_gemms=_regrouped(profile.weight_gradient_gemms, ep),
        input_gradient_gemms=_regrouped(profile.input_gradient_gemms, ep),
    )


def _moved_share(role: Role, tp: Number, read_share: Number, undivided: Number) -> Number:
    match role:
        case Role.OUTPUTS:
            return read_share + (1.0 - read_share) / tp
        case Role.INPUTS:
            return read_share / tp + (1.0 - read_share)
        case Role.FEATURES | Role.EXPERTS:
            return 1.0 / tp
        case Role.VOCABULARY:
            return 1.0
        case Role.WHOLE:
            return undivided


def _scaled(cost: Affine, per_sample: Number, fixed: Number | None = None) -> Affine:
    return Affine(
        cost.fixed * (per_sample if fixed is None else fixed), cost.per_sample * per_sample
    )


def _divided(gemms: Sequence[Gemm], side: Side | None, tp: Number) -> tuple[Gemm, ...]:
    if side is None:
        return tuple(gemms)
    return tuple(replace(gemm, **{side: getattr(gemm, side) / tp}) for gemm in gemms)


def _regrouped(gemms: Sequence[Gemm], ep: Number) -> tuple[Gemm, ...]:
    """Expert GEMMs: ``ep`` times fewer with ``ep`` times the tokens; the router is replicated."""
    router, *experts = gemms or (None,)
    if router is None:
        return ()
    changed = [
        replace(g, count=g.count / ep, **{g.grows: getattr(g, g.grows) * ep}) for g in experts
    ]
    return (router, *changed)


def _experts_of(tensors: tuple[tuple[str, int], ...], ep: Number) -> Any:
    return tuple((name, size if _stays(name) else _count(size / ep)) for name, size in tensors)


def _stays(tensor: str) -> bool:
    """Whether a tensor is replicated on all expert-parallel devices (the router's)."""
    return tensor.startswith("router")


def _shared_tensors(tensors: tuple[tuple[str, int], ...], share: Number) -> Any:
    return tuple((name, _count(size * share)) for name, size in tensors)


def _counts(size: Affine) -> Affine:
    return Affine(_count(size.fixed), _count(size.per_sample))


def _count(number: Number) -> Any:
    """Round a scalar; arrays stay fractional."""
    return number if isinstance(number, np.ndarray) else round(number)
