"""Training losses."""

from paceline.errors import InputError
from paceline.workload.cost import Shape
from paceline.workload.ops.base import Op, Shapes, operation
from paceline.workload.ops.dimensions import describe, elements, exceeds, require_rank, same_shape
from paceline.workload.ops.work import FLOAT32_BYTES, INDEX_BYTES, Kept, Traffic, Work


@operation("cross_entropy", inputs=2)
class CrossEntropy(Op):
    """Mean cross entropy of scores (classes in the last dimension) against integer targets.

    Computed in 32 bits at every precision, as ``torch.autocast`` does.
    """

    def output(self, inputs: Shapes) -> Shape:
        scores, targets = inputs
        require_rank(scores, 1, "classes in the last dimension")
        if not same_shape(scores[:-1], targets):
            raise InputError(
                f"scores {describe(scores)} need targets {describe(scores[:-1])} "
                f"(got {describe(targets)})"
            )
        return ()

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """Saves the log-probabilities and the targets."""
        scores, targets = elements(inputs[0]), elements(inputs[1])
        wide = scores * FLOAT32_BYTES
        return Work(
            forward_traffic=Traffic(scores, other_bytes=wide + targets * INDEX_BYTES),
            backward_traffic=Traffic(scores, other_bytes=wide + targets * INDEX_BYTES),
            kept=Kept(inputs=(1,), other_bytes=wide),
        )


@operation("focal_loss")
class FocalLoss(CrossEntropy):
    """Mean focal loss (Lin et al. 2017) of the sigmoid of each score against integer targets.

    The label of a score is 1 for the target class and 0 for all others.
    """

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """Saves the scores, and their probabilities in 32 bits."""
        scores, targets = elements(inputs[0]), elements(inputs[1])
        wide = scores * FLOAT32_BYTES
        return Work(
            forward_traffic=Traffic(scores, other_bytes=2 * wide + targets * INDEX_BYTES),
            backward_traffic=Traffic(scores, other_bytes=2 * wide + targets * INDEX_BYTES),
            kept=Kept(inputs=(0, 1), other_bytes=wide),
        )


@operation("weighted_sum", inputs=(1, None))
class WeightedSum(Op):
    """Weighted sum of scalars: the losses of a network with several heads."""

    weights: tuple[float, ...]

    def output(self, inputs: Shapes) -> Shape:
        if len(inputs) != len(self.weights):
            raise InputError(f"{len(self.weights)} weights for {len(inputs)} inputs")
        if any(inputs):
            raise InputError("all inputs of a weighted sum must be scalars")
        return ()

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        return Work()


_FUNCTIONS = ("smooth_l1", "binary_cross_entropy", "squared_error")


@operation("elementwise_loss", inputs=2)
class ElementwiseLoss(Op):
    """Mean over all elements of a function of prediction and target."""

    function: str

    def __post_init__(self) -> None:
        if self.function not in _FUNCTIONS:
            raise InputError(f"no loss named '{self.function}'", f"one of {', '.join(_FUNCTIONS)}")

    def output(self, inputs: Shapes) -> Shape:
        if not same_shape(*inputs):
            raise InputError(
                f"prediction {describe(inputs[0])} and target {describe(inputs[1])} differ in shape"
            )
        return ()

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """Reads and saves both inputs."""
        size = elements(inputs[0])
        return Work(
            forward_traffic=Traffic(2 * size),
            backward_traffic=Traffic(3 * size),
            kept=Kept(inputs=(0, 1)),
        )


@operation("ctc_loss", inputs=2)
class CtcLoss(Op):
    """Connectionist temporal classification: frames x classes against a shorter list of labels.

    Class 0 is the blank. Computed in 32 bits at every precision.
    """

    def output(self, inputs: Shapes) -> Shape:
        scores, labels = inputs
        if len(scores) != 2 or len(labels) != 1:
            raise InputError(
                f"needs frames x classes and labels (got {describe(scores)} and {describe(labels)})"
            )
        if exceeds(labels[0], scores[0]):
            raise InputError(
                f"{describe(labels)} labels exceed the {describe(scores[:1])} frames",
                "use a longer sequence",
            )
        return ()

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """Saves log-probabilities, labels, and the forward variables of every alignment."""
        scores, labels = elements(inputs[0]), elements(inputs[1])
        alignments = inputs[0][0] * (2 * labels + 1)
        wide = (scores + alignments) * FLOAT32_BYTES
        return Work(
            forward_traffic=Traffic(scores, other_bytes=wide),
            backward_traffic=Traffic(scores, other_bytes=2 * wide),
            kept=Kept(inputs=(1,), other_bytes=wide),
        )
