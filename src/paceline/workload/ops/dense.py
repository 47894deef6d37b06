"""Linear layers, matrix products, embeddings, learned positions and class tokens."""

from paceline.errors import InputError
from paceline.workload.cost import Affine, Gemm, Shape
from paceline.workload.ops.base import Op, Parameters, Shapes, count_parameters, operation
from paceline.workload.ops.dimensions import (
    describe,
    differs,
    elements,
    exceeds,
    fixed_dimension,
    require_positive,
    require_rank,
    same_shape,
)
from paceline.workload.ops.work import INDEX_BYTES, Kept, Traffic, Work


@operation("linear")
class Linear(Op):
    """A matrix applied to the last dimension of every row."""

    out_features: int
    bias: bool = True

    def __post_init__(self) -> None:
        require_positive(out_features=self.out_features)

    def output(self, inputs: Shapes) -> Shape:
        (shape,) = inputs
        require_rank(shape, 1, "features in the last dimension")
        return (*shape[:-1], self.out_features)

    def parameters(self, inputs: Shapes) -> Parameters:
        weight = (self.out_features, fixed_dimension(inputs[0], -1))
        return {"weight": weight} | ({"bias": (self.out_features,)} if self.bias else {})

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """Three GEMMs over all rows; saves the input."""
        (shape,) = inputs
        rows, features = elements(shape[:-1]), fixed_dimension(shape, -1)
        weights = count_parameters(self.parameters(inputs))
        moved = elements(shape) + rows * self.out_features
        return Work(
            forward=(Gemm(self.out_features, rows, features, grows="n"),),
            weight_gradient=(Gemm(self.out_features, features, rows, grows="k"),),
            input_gradient=(
                (Gemm(features, rows, self.out_features, grows="n"),)
                if needs_input_gradient
                else ()
            ),
            forward_traffic=Traffic(moved, weights=weights),
            backward_traffic=Traffic(moved, weights) if needs_input_gradient else Traffic(),
            weight_gradient_traffic=Traffic(moved, weight_gradients=weights),
            kept_for_weights=Kept(inputs=(0,)),
        )


@operation("embedding")
class Embedding(Op):
    """Rows of a table by index.

    The gradient is dense by default: the whole table is written and exchanged. If ``sparse``, it
    has one row per index.
    """

    vocabulary: int
    width: int
    sparse: bool = False

    def __post_init__(self) -> None:
        require_positive(vocabulary=self.vocabulary, width=self.width)

    def output(self, inputs: Shapes) -> Shape:
        return (*inputs[0], self.width)

    def parameters(self, inputs: Shapes) -> Parameters:
        return {"weight": (self.vocabulary, self.width)}

    def gradient_elements(self, inputs: Shapes) -> Affine:
        """The table, or one row per index if sparse."""
        if self.sparse:
            return Affine(0, elements(inputs[0]) * self.width)
        return Affine(self.vocabulary * self.width, 0)

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """Copies rows; saves the indices."""
        indices = elements(inputs[0])
        rows = indices * self.width
        return Work(
            forward_traffic=Traffic(2 * rows, other_bytes=indices * INDEX_BYTES),
            weight_gradient_traffic=Traffic(
                2 * rows,
                weight_gradients=0 if self.sparse else self.vocabulary * self.width,
                other_bytes=indices * INDEX_BYTES,
            ),
            kept_for_weights=Kept(inputs=(0,)),
        )


@operation("position_embedding")
class PositionEmbedding(Op):
    """Adds one learned row per position to each token, for at most ``length`` positions."""

    length: int

    def __post_init__(self) -> None:
        require_positive(length=self.length)

    def output(self, inputs: Shapes) -> Shape:
        (shape,) = inputs
        require_rank(shape, 2, "positions x width")
        if exceeds(shape[-2], self.length):
            raise InputError(
                f"sequence of {describe(shape[-2:-1])} exceeds the {self.length} learned positions",
                f"use a sequence of at most {self.length}",
            )
        return shape

    def parameters(self, inputs: Shapes) -> Parameters:
        return {"weight": (self.length, fixed_dimension(inputs[0], -1))}

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """An addition; saves nothing."""
        size = elements(inputs[0])
        weights = count_parameters(self.parameters(inputs))
        return Work(
            forward_traffic=Traffic(2 * size, weights=weights),
            weight_gradient_traffic=Traffic(size, weight_gradients=weights),
        )


@operation("class_token")
class ClassToken(Op):
    """Prepends one learned token to the tokens of every sample."""

    def output(self, inputs: Shapes) -> Shape:
        (shape,) = inputs
        require_rank(shape, 2, "positions x width")
        return (*shape[:-2], shape[-2] + 1, shape[-1])

    def parameters(self, inputs: Shapes) -> Parameters:
        return {"weight": (1, fixed_dimension(inputs[0], -1))}

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """A copy forward; the gradient of the tokens is a view."""
        width = fixed_dimension(inputs[0], -1)
        return Work(
            forward_traffic=Traffic(2 * elements(inputs[0]) + width, weights=width),
            weight_gradient_traffic=Traffic(width, weight_gradients=width),
        )


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
