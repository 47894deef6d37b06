"""Mixture of experts."""

from paceline.errors import InputError
from paceline.workload.cost import Gemm, Shape
from paceline.workload.ops.base import Op, Parameters, Shapes, count_parameters, operation
from paceline.workload.ops.dimensions import (
    describe,
    elements,
    even_share,
    fixed_dimension,
    require_positive,
)
from paceline.workload.ops.work import Kept, Traffic, Work


@operation("moe")
class MixtureOfExperts(Op):
    """A router that sends each token to ``top_k`` of ``experts`` networks of width ``hidden``.

    Gated experts compute down(silu(gate(x)) * up(x)), others down(gelu(up(x))); ``bias`` adds
    biases to the router and every matrix. Assumes balanced routing; the weights of every expert
    are read in every step. ``router_width`` is the width of the router's input where experts work
    on narrower tokens (LatentMoE of Nemotron 3), 0 for the width of the tokens.
    """

    experts: int
    top_k: int
    hidden: int
    gated: bool = True
    bias: bool = False
    router_width: int = 0

    def __post_init__(self) -> None:
        require_positive(experts=self.experts, top_k=self.top_k, hidden=self.hidden)
        if self.top_k > self.experts:
            raise InputError(f"top_k {self.top_k} exceeds the number of experts ({self.experts})")

    def output(self, inputs: Shapes) -> Shape:
        if len(inputs[0]) != 2:
            raise InputError(f"needs tokens x width (got {describe(inputs[0])})")
        return inputs[0]

    def parameters(self, inputs: Shapes) -> Parameters:
        width = fixed_dimension(inputs[0], -1)
        into, out = (self.experts, self.hidden, width), (self.experts, width, self.hidden)
        shapes: dict[str, tuple[int, ...]] = {"router": (self.experts, self.router_width or width)}
        if self.gated:
            shapes["gate"] = into
        shapes |= {"up": into, "down": out}
        if self.bias:
            shapes |= {f"{name}_bias": shape[:-1] for name, shape in shapes.items()}
        return shapes

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """Saves the input, the routed tokens and the inner activations of their experts.

        Routing weights are applied to the inner activations (Megatron Core's weighted SwiGLU), so
        results of experts are not saved.
        """
        tokens, width = inputs[0][0], fixed_dimension(inputs[0], -1)
        routed = tokens * self.top_k
        load = even_share(routed, self.experts)
        matrices_in = 2 if self.gated else 1
        into = Gemm(self.hidden, load, width, self.experts * matrices_in)
        out = Gemm(width, load, self.hidden, self.experts)
        router = Gemm(self.experts, tokens, self.router_width or width)
        weights = count_parameters(self.parameters(inputs))
        inner = (2 * matrices_in) * self.hidden
        moved = 2 * elements(inputs[0]) + routed * (4 * width + 2 * inner)
        return Work(
            forward=(router, into, out),
            weight_gradient=tuple(Gemm(g.m, g.k, g.n, g.count, "k") for g in (router, into, out)),
            input_gradient=(
                tuple(Gemm(g.k, g.n, g.m, g.count) for g in (router, into, out))
                if needs_input_gradient
                else ()
            ),
            forward_traffic=Traffic(moved, weights),
            backward_traffic=Traffic(2 * moved, weights, weights),
            kept=Kept(
                (0,),
                elements=routed * (width + inner) + tokens * 2 * self.experts,
                operands=routed * (width + self.hidden),
            ),
        )
