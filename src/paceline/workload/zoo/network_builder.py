"""Build networks layer by layer: each method adds a node and returns its name."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, TypeAlias

from paceline.workload import ops
from paceline.workload.graph import Graph, InputSpec, Node

Sizes: TypeAlias = int | tuple[int, ...]


class NetworkBuilder:
    """Collects the nodes of a graph in the order in which they are added.

    Methods take the name of a layer, the names of its inputs, and its options; ``scope`` prefixes
    names, so that ``conv1`` inside ``block.0`` becomes ``block.0.conv1``. ``image_norm`` replaces
    the operation of `batch_norm`, so that detectors can use a backbone with another norm.
    """

    def __init__(self, name: str, image_norm: ops.Op | None = None) -> None:
        self.name = name
        self._image_norm = image_norm or ops.BatchNorm()
        self._frozen = False
        self._inputs: dict[str, InputSpec] = {}
        self._nodes: list[Node] = []
        self._scopes: list[str] = []

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Prefix the names of layers added inside with ``name`` and a dot."""
        self._scopes.append(name)
        try:
            yield
        finally:
            self._scopes.pop()

    @contextmanager
    def frozen(self, is_frozen: bool = True) -> Iterator[None]:
        """Freeze the weights of layers added inside."""
        before, self._frozen = self._frozen, is_frozen
        try:
            yield
        finally:
            self._frozen = before

    def image(self, *shape: int, name: str = "image") -> str:
        """An input of floating-point numbers, channels first."""
        self._inputs[name] = InputSpec(shape)
        return name

    def sound(self, bands: int, frames: int | Literal["sequence"]) -> str:
        """An input of one-dimensional signals, channels first."""
        self._inputs["sound"] = InputSpec((bands, frames))
        return "sound"

    def integers(self, name: str, limit: int, *shape: int | Literal["sequence"]) -> str:
        """An input of integers below ``limit``: classes or tokens."""
        self._inputs[name] = InputSpec(shape, "integer", limit)
        return name

    def add_node(self, name: str, op: ops.Op, *reads: str, shares: str | None = None) -> str:
        full_name = ".".join([*self._scopes, name])
        self._nodes.append(Node(full_name, op, reads, shares, self._frozen))
        return full_name

    def build(
        self, output: str, sequence: int | None = None, dimensions: dict[str, int] | None = None
    ) -> Graph:
        return Graph(
            self.name, self._inputs, tuple(self._nodes), output, sequence, dimensions or {}
        )

    def conv(
        self,
        name: str,
        x: str,
        out_channels: int,
        kernel: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        *,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = False,
        dimensions: int = 2,
        shares: str | None = None,
    ) -> str:
        """A convolution; a single size applies to every dimension."""
        rank = len(kernel) if isinstance(kernel, tuple) else dimensions
        op = ops.Convolution(
            out_channels,
            _sizes(kernel, rank),
            _sizes(stride, rank),
            _sizes(padding, rank),
            _sizes(dilation, rank),
            groups,
            bias,
        )
        return self.add_node(name, op, x, shares=shares)

    def conv_transposed(
        self,
        name: str,
        x: str,
        out_channels: int,
        kernel: Sizes,
        stride: Sizes,
        *,
        dimensions: int = 2,
    ) -> str:
        """A transposed convolution with bias, without padding."""
        op = ops.Convolution(
            out_channels,
            _sizes(kernel, dimensions),
            _sizes(stride, dimensions),
            _sizes(0, dimensions),
            _sizes(1, dimensions),
            bias=True,
            transposed=True,
        )
        return self.add_node(name, op, x)

    def linear(
        self, name: str, x: str, out_features: int, bias: bool = True, shares: str | None = None
    ) -> str:
        return self.add_node(name, ops.Linear(out_features, bias), x, shares=shares)

    def conv_norm(
        self,
        number: int | str,
        x: str,
        out_channels: int,
        kernel: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        *,
        groups: int = 1,
    ) -> str:
        """A convolution without bias and its batch normalisation, ``conv1`` and ``bn1``."""
        y = self.conv(f"conv{number}", x, out_channels, kernel, stride, padding, groups=groups)
        return self.batch_norm(f"bn{number}", y)

    def conv_unit(
        self,
        name: str,
        x: str,
        out_channels: int,
        kernel: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        *,
        groups: int = 1,
        activation: str = "relu",
    ) -> str:
        """Convolution, batch normalisation and activation, in a scope of their own."""
        with self.scope(name):
            y = self.conv_norm("", x, out_channels, kernel, stride, padding, groups=groups)
            return self.activation(activation, y, activation)

    def batch_norm(self, name: str, x: str) -> str:
        """Batch normalisation, or the norm that replaces it."""
        return self.add_node(name, self._image_norm, x)

    def layer_norm(self, name: str, x: str, bias: bool = True) -> str:
        return self.add_node(name, ops.LayerNorm(bias), x)

    def activation(self, name: str, x: str, function: str = "relu") -> str:
        """A function of each element; ``prelu`` learns a slope for each channel."""
        op = ops.Prelu() if function == "prelu" else ops.Activation(function)
        return self.add_node(name, op, x)

    def max_pool(
        self, name: str, x: str, kernel: int, stride: int, padding: int = 0, ceil: bool = False
    ) -> str:
        window = (_sizes(kernel, 2), _sizes(stride, 2), _sizes(padding, 2))
        return self.add_node(name, ops.MaxPool(*window, ceil), x)

    def avg_pool(self, name: str, x: str, kernel: int, stride: int, padding: int = 0) -> str:
        window = (_sizes(kernel, 2), _sizes(stride, 2), _sizes(padding, 2))
        return self.add_node(name, ops.AveragePool(*window), x)

    def global_avg_pool(self, name: str, x: str) -> str:
        return self.add_node(name, ops.GlobalAveragePool(), x)

    def add(self, name: str, *reads: str) -> str:
        return self.add_node(name, ops.Add(), *reads)

    def concat(self, name: str, reads: Sequence[str], axis: int = 0) -> str:
        """Inputs concatenated, by default along the channels."""
        return self.add_node(name, ops.Concatenate(axis), *reads)

    def flatten(self, name: str, x: str, start_axis: int = 0) -> str:
        return self.add_node(name, ops.Flatten(start_axis), x)

    def dropout(self, name: str, x: str, probability: float) -> str:
        return self.add_node(name, ops.Dropout(probability), x)

    def embedding(self, name: str, indices: str, vocabulary: int, width: int) -> str:
        return self.add_node(name, ops.Embedding(vocabulary, width), indices)

    def multiply(self, name: str, x: str, y: str) -> str:
        """A product; the second may be one value per channel of the first."""
        return self.add_node(name, ops.Multiply(), x, y)

    def reshape(self, name: str, x: str, *shape: int) -> str:
        return self.add_node(name, ops.Reshape(shape), x)

    def part(self, name: str, x: str, axis: int, start: int, stop: int) -> str:
        return self.add_node(name, ops.Slice(axis, start, stop), x)

    def transpose(self, name: str, x: str, *axes: int) -> str:
        return self.add_node(name, ops.Transpose(axes), x)

    def elementwise_loss(self, name: str, function: str, predicted: str, wanted: str) -> str:
        return self.add_node(name, ops.ElementwiseLoss(function), predicted, wanted)

    def sum_of_losses(self, *losses: str) -> Graph:
        weights = (1.0,) * len(losses)
        return self.build(self.add_node("loss", ops.WeightedSum(weights), *losses))

    def cross_entropy(self, name: str, scores: str, targets: str) -> str:
        return self.add_node(name, ops.CrossEntropy(), scores, targets)

    def segmentation_loss(self, maps: str, classes: int, *sides: int) -> Graph:
        """The finished graph of a segmentation network: scores per class and position."""
        last = self.transpose("classes_last", maps, *range(1, len(sides) + 1), 0)
        return self.build(self.cross_entropy("loss", last, self.integers("label", classes, *sides)))

    def classifier_loss(self, scores: str, classes: int) -> Graph:
        """The finished graph of an image classifier: scores against a label."""
        label = self.integers("label", classes)
        return self.build(self.cross_entropy("loss", scores, label))


def _sizes(value: Sizes, rank: int) -> tuple[int, ...]:
    return value if isinstance(value, tuple) else (value,) * rank
