"""Matrix products of two activations."""

from paceline.errors import InputError
from paceline.workload.cost import Gemm, Shape
from paceline.workload.ops.base import Op, Shapes, operation
from paceline.workload.ops.dimensions import describe, differs, elements, same_shape
from paceline.workload.ops.work import Kept, Traffic, Work


@operation("matrix_product", inputs=2)
class MatrixProduct(Op):
    """Batched matrix product (m x k) (k x n) of the last two dimensions."""

    def output(self, inputs: Shapes) -> Shape:
        left, right = inputs
        if (
            min(len(left), len(right)) < 2
            or not same_shape(left[:-2], right[:-2])
            or differs(left[-1], right[-2])
        ):
            raise InputError(f"cannot multiply {describe(left)} by {describe(right)}")
        return (*left[:-1], right[-1])

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """One GEMM forward, two backward; saves both inputs."""
        left, right = inputs
        count, (m, k), n = elements(left[:-2]), left[-2:], right[-1]
        moved = elements(left) + elements(right) + elements(self.output(inputs))
        to_left = Gemm(m, k, n, count, "count")
        to_right = Gemm(k, n, m, count, "count")
        return Work(
            forward=(Gemm(m, n, k, count, "count"),),
            input_gradient=(to_left, to_right) if needs_input_gradient else (),
            forward_traffic=Traffic(moved),
            backward_traffic=Traffic(2 * moved),
            kept=Kept(inputs=(0, 1)),
        )


@operation("dot_interaction")
class DotInteraction(Op):
    """Dot products of all pairs of feature vectors (DLRM)."""

    def output(self, inputs: Shapes) -> Shape:
        (shape,) = inputs
        if len(shape) != 2:
            raise InputError(f"needs features x width (got {describe(shape)})")
        return (shape[0] * (shape[0] - 1) // 2,)

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """Computes the full square and takes one triangle of it; saves the input."""
        features, width = inputs[0]
        square = features * features
        moved = Traffic(2 * elements(inputs[0]) + square)
        back = Gemm(features, width, features, grows="count")
        return Work(
            forward=(Gemm(features, features, width, grows="count"),),
            input_gradient=(back, back) if needs_input_gradient else (),
            forward_traffic=moved + Traffic(square),
            backward_traffic=moved + moved,
            kept=Kept(inputs=(0,)),
        )
