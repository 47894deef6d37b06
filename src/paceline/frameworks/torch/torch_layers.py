"""PyTorch modules of operations on images and of plain layers.

`torch_sequence_layers` has those of sequences. No module works in place: a ReLU writes a new
tensor, since a residual sum may read its input.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from layer_settings import RESPONSE_ALPHA, RESPONSE_BETA, RESPONSE_K, RMS_EPSILON
from torch import Tensor, nn

Fields = Mapping[str, Any]
Shapes = list[tuple[int, ...]]
"""Shapes of a node's inputs for one sample."""

RESPONSE = (RESPONSE_ALPHA, RESPONSE_BETA, RESPONSE_K)
BUILDERS: dict[str, Callable[[Fields, Shapes], nn.Module]] = {}
"""Builder of each operation by its name: called with the node and the shapes it reads."""


def builds(op: str) -> Callable[[Callable[..., nn.Module]], Callable[..., nn.Module]]:
    """Decorator that registers the builder of an operation."""

    def register(builder: Callable[[Fields, Shapes], nn.Module]) -> Callable[..., nn.Module]:
        BUILDERS[op] = builder
        return builder

    return register


def has_no_data(tensor: Tensor) -> bool:
    """Whether a tensor has a shape but no values: on the meta device, or fake."""
    return tensor.device.type == "meta" or type(tensor).__name__ == "FakeTensor"


class Apply(nn.Module):
    """A function without weights as a module."""

    def __init__(self, function: Callable[..., Tensor], label: str) -> None:
        super().__init__()
        self._function, self._label = function, label

    def forward(self, *inputs: Tensor) -> Tensor:
        return self._function(*inputs)

    def extra_repr(self) -> str:
        return self._label


@builds("conv")
def _conv(node: Fields, shapes: Shapes) -> nn.Module:
    dimensions, transposed = len(node["kernel"]), node.get("transposed", False)
    kinds = {
        False: (nn.Conv1d, nn.Conv2d, nn.Conv3d),
        True: (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d),
    }
    more: dict[str, Any] = {}
    if transposed and node.get("output_padding"):
        more["output_padding"] = tuple(node["output_padding"])
    return kinds[transposed][dimensions - 1](
        shapes[0][0],
        node["out_channels"],
        tuple(node["kernel"]),
        stride=tuple(node["stride"]),
        padding=tuple(node["padding"]),
        dilation=tuple(node["dilation"]),
        groups=node["groups"],
        bias=node["bias"],
        **more,
    )


@builds("embedding")
class Embedding(nn.Embedding):
    """An embedding; its gradient is sparse if the node requires it and the tensors have data."""

    def __init__(self, node: Fields, _: Shapes) -> None:
        super().__init__(node["vocabulary"], node["width"])
        self._wants_sparse = node.get("sparse", False)

    def forward(self, indices: Tensor) -> Tensor:
        sparse = self._wants_sparse and not has_no_data(indices)
        return F.embedding(indices, self.weight, sparse=sparse)


@builds("batch_norm")
def _batch_norm(_: Fields, shapes: Shapes) -> nn.Module:
    kinds = (nn.BatchNorm1d, nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
    return kinds[len(shapes[0]) - 1](shapes[0][0])


@builds("frozen_batch_norm")
class FrozenBatchNorm(nn.Module):
    """Untrained scale and shift of each channel."""

    def __init__(self, _: Fields, shapes: Shapes) -> None:
        super().__init__()
        shape = (shapes[0][0], *[1] * (len(shapes[0]) - 1))
        self.register_buffer("scale", torch.ones(shape))
        self.register_buffer("shift", torch.zeros(shape))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.scale + self.shift


ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "relu6": nn.ReLU6,
    "sigmoid": nn.Sigmoid,
    "tanh": nn.Tanh,
    "softmax": lambda: nn.Softmax(dim=-1),
    "gelu": nn.GELU,
    "gelu_tanh": lambda: nn.GELU(approximate="tanh"),
    "silu": nn.SiLU,
    "hard_swish": nn.Hardswish,
    "leaky_relu": nn.LeakyReLU,
    "elu": nn.ELU,
}
"""Every activation of the graph."""


def _pool(node: Fields, kinds: tuple[Callable[..., nn.Module], ...]) -> nn.Module:
    return kinds[len(node["kernel"]) - 1](
        tuple(node["kernel"]),
        stride=tuple(node["stride"]),
        padding=tuple(node["padding"]),
        ceil_mode=node["ceil"],
    )


@builds("linear")
def _linear(node: Fields, shapes: Shapes) -> nn.Module:
    return nn.Linear(shapes[0][-1], node["out_features"], bias=node["bias"])


@builds("add")
def _add(_: Fields, shapes: Shapes) -> nn.Module:
    return Apply(lambda first, *others: sum(others, first), f"sum of {len(shapes)}")


BUILDERS |= {
    "activation": lambda node, _: ACTIVATIONS[node["function"]](),
    "avg_pool": lambda node, _: _pool(node, (nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d)),
    "dropout": lambda node, _: nn.Dropout(node["probability"]),
    "flatten": lambda node, _: nn.Flatten(1 + node.get("start_axis", 0)),
    "group_norm": lambda node, shapes: nn.GroupNorm(node["groups"], shapes[0][0]),
    "layer_norm": lambda node, shapes: nn.LayerNorm(shapes[0][-1], bias=node.get("bias", True)),
    "local_response_norm": lambda node, _: nn.LocalResponseNorm(node["size"], *RESPONSE),
    "matrix_product": lambda _, __: Apply(torch.matmul, "matrix product"),
    "max_pool": lambda node, _: _pool(node, (nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d)),
    "prelu": lambda _, shapes: nn.PReLU(shapes[0][0]),
    "rms_norm": lambda _, shapes: nn.RMSNorm(shapes[0][-1], eps=RMS_EPSILON),
    "upsample": lambda node, _: nn.Upsample(scale_factor=node["scale"]),
}


@builds("global_avg_pool")
def _global_avg_pool(_: Fields, shapes: Shapes) -> nn.Module:
    axes = tuple(range(2, len(shapes[0]) + 1))
    return Apply(lambda x: x.mean(dim=axes), "mean over positions")


@builds("add_per_channel")
def _add_per_channel(_: Fields, shapes: Shapes) -> nn.Module:
    missing = (1,) * (len(shapes[0]) - len(shapes[1]))
    return Apply(lambda x, y: x + y.reshape(*y.shape, *missing), "sum per channel")


@builds("fused_sum")
class FusedSum(nn.Module):
    """Sum of inputs weighted by ReLU(weight), normalised by the sum of weights."""

    def __init__(self, _: Fields, shapes: Shapes) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(len(shapes)))

    def forward(self, *inputs: Tensor) -> Tensor:
        weights = self.weight.relu()
        weights = weights / (weights.sum() + 1e-4)
        scaled = [x * weight for x, weight in zip(inputs, weights.unbind(), strict=True)]
        return sum(scaled[1:], scaled[0])


@builds("dot_interaction")
class DotInteraction(nn.Module):
    """Dot products of all pairs of features: the strict lower triangle of the product matrix."""

    def __init__(self, _: Fields, shapes: Shapes) -> None:
        super().__init__()
        count = shapes[0][0]
        places = [row * count + column for row in range(count) for column in range(row)]
        self.register_buffer("places", torch.tensor(places))

    def forward(self, x: Tensor) -> Tensor:
        return (x @ x.transpose(-2, -1)).flatten(1).index_select(1, self.places)


@builds("roi_align")
class RoiAlign(nn.Module):
    """RoI align; each feature map has an equal share of the boxes."""

    def __init__(self, node: Fields, _: Shapes) -> None:
        super().__init__()
        self._size, self._samples = node["size"], node["samples"]

    def forward(self, boxes: Tensor, *maps: Tensor) -> Tensor:
        """Boxes are (batch, count, 4), corners in -1 to 1; the result has channels, then boxes."""
        shares = boxes.tensor_split(len(maps), dim=1)
        return torch.cat([self._cut(*pair) for pair in zip(shares, maps, strict=True)], dim=2)

    def _cut(self, boxes: Tensor, image: Tensor) -> Tensor:
        rows, columns = (size * self._samples for size in self._size)
        low, high = boxes[..., None, None, :2], boxes[..., None, None, 2:]
        steps = [(torch.arange(n, device=boxes.device) + 0.5) / n for n in (columns, rows)]
        places = torch.stack(torch.meshgrid(*steps, indexing="xy"), dim=-1)
        points = (low + (high - low) * places).flatten(1, 2)
        values = F.grid_sample(image, points, align_corners=False)
        values = F.avg_pool2d(values, self._samples)
        return values.unflatten(2, (boxes.shape[1], -1))


@builds("multiply")
def _multiply(_: Fields, shapes: Shapes) -> nn.Module:
    missing = (1,) * (len(shapes[0]) - len(shapes[1]))
    return Apply(lambda x, y: x * y.reshape(*y.shape, *missing), "product")


@builds("reshape")
def _reshape(node: Fields, _: Shapes) -> nn.Module:
    shape = tuple(node["shape"])
    return Apply(lambda x: x.reshape(x.shape[0], *shape), f"reshape to {shape}")


@builds("transpose")
def _transpose(node: Fields, _: Shapes) -> nn.Module:
    axes = (0, *(axis + 1 for axis in node["axes"]))
    return Apply(lambda x: x.permute(axes), f"order {axes}")


@builds("slice")
def _slice(node: Fields, shapes: Shapes) -> nn.Module:
    axis = 1 + node["axis"] % len(shapes[0])
    start, length = node["start"], node["stop"] - node["start"]
    return Apply(lambda x: x.narrow(axis, start, length), f"{start}:{node['stop']} of {axis}")


@builds("expand")
def _expand(node: Fields, shapes: Shapes) -> nn.Module:
    axis, count = 1 + node["axis"] % len(shapes[0]), node["count"]
    sizes = [count if place == axis else -1 for place in range(1 + len(shapes[0]))]
    return Apply(lambda x: x.expand(*sizes), f"{count} along {axis}")


@builds("concat")
def _concat(node: Fields, shapes: Shapes) -> nn.Module:
    axis = 1 + node.get("axis", 0) % len(shapes[0])
    return Apply(lambda *inputs: torch.cat(inputs, dim=axis), f"along {axis}")


@builds("pad_shortcut")
class PadShortcut(nn.Module):
    """Every ``stride``-th position, with zero channels before and after (ResNet's option A)."""

    def __init__(self, node: Fields, shapes: Shapes) -> None:
        super().__init__()
        added = node["out_channels"] - shapes[0][0]
        positions = len(shapes[0]) - 1
        self._padding = (0, 0) * positions + (added // 2, added - added // 2)
        self._taken = (slice(None), slice(None), *[slice(None, None, node["stride"])] * positions)

    def forward(self, x: Tensor) -> Tensor:
        return F.pad(x[self._taken], self._padding)
