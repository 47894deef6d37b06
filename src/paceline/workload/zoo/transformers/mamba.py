"""Layers of Mamba (Gu and Dao 2023) and Mamba-2 (Dao and Gu 2024)."""

from itertools import accumulate

from paceline.workload import ops
from paceline.workload.zoo.network_builder import NetworkBuilder
from paceline.workload.zoo.transformers.shape import StateSpace


def state_space(net: NetworkBuilder, x: str, hidden: int, space: StateSpace) -> str:
    with net.scope("mamba"):
        y = _by_chunks(net, x, space) if space.heads else _by_tokens(net, x, space)
        return net.linear("out", y, hidden, space.bias)


def _by_tokens(net: NetworkBuilder, x: str, space: StateSpace) -> str:
    joint = net.linear("in", x, 2 * space.inner, space.bias)
    values, gate = _parts(net, joint, {"values": space.inner, "gate": space.inner})
    values = _filtered(net, values, space)
    narrow = net.linear("projected", values, space.step_rank + 2 * space.state, bias=False)
    widths = {"steps_narrow": space.step_rank, "into": space.state, "out_of": space.state}
    made = _parts(net, narrow, widths)
    if space.inner_norms:
        made = [
            net.add_node(f"{name}_norm", ops.RmsNorm(), part)
            for name, part in zip(widths, made, strict=True)
        ]
    steps = net.linear("steps", made[0], space.inner)
    y = net.add_node("scan", ops.SelectiveScan(), values, steps, made[1], made[2])
    return _gated(net, y, gate)


def _by_chunks(net: NetworkBuilder, x: str, space: StateSpace) -> str:
    shared = space.groups * space.state
    mixed = space.inner + 2 * shared
    joint = net.linear("in", x, space.inner + mixed + space.heads, space.bias)
    widths = {"gate": space.inner, "mixed": mixed, "steps": space.heads}
    gate, both, steps = _parts(net, joint, widths)
    both = _filtered(net, both, space)
    values, into, out_of = _parts(
        net, both, {"values": space.inner, "into": shared, "out_of": shared}
    )
    op = ops.StateSpaceDual(space.heads, space.groups, space.state, space.chunk)
    y = _gated(net, net.add_node("scan", op, values, steps, into, out_of), gate)
    return net.add_node("norm", ops.RmsNorm(), y) if space.gated_norm else y


def _parts(net: NetworkBuilder, x: str, widths: dict[str, int]) -> list[str]:
    ends = list(accumulate(widths.values()))
    return [
        net.part(name, x, 1, end - width, end)
        for (name, width), end in zip(widths.items(), ends, strict=True)
    ]


def _filtered(net: NetworkBuilder, x: str, space: StateSpace) -> str:
    y = net.add_node("conv", ops.CausalConvolution(space.kernel, space.conv_bias), x)
    return net.activation("conv_activation", y, "silu")


def _gated(net: NetworkBuilder, y: str, gate: str) -> str:
    return net.multiply("gated", y, net.activation("gate_activation", gate, "silu"))
