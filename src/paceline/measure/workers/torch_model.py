"""Builds a layer graph (its JSON form) into PyTorch modules, with its loss and its optimiser.

PyTorch and the standard library only. Each node becomes one module that keeps the node's name
(dots nest: ``layer1.0.conv1``), so that times, parameters and gradients can be told by node.
Nothing works in place: a rectifier writes a new tensor, so a residual sum may read its input.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Fields = Mapping[str, Any]
Shapes = list[tuple[int, ...]]
"""Shapes of a node's inputs for one sample."""

LOSSES = ("cross_entropy", "weighted_sum")
"""Operations that belong to the loss, not to the network."""

BUILDERS: dict[str, Callable[[Fields, Shapes], nn.Module]] = {}
"""How each operation becomes a module, by the operation's name."""


def build(graph: Fields, sequence: int = 8) -> "Network":
    """The network of a graph without its loss, in training mode, with PyTorch's initial weights.

    ``sequence`` stands in for the sequence length while shapes are worked out; the network runs
    at any other.
    """
    return Network(graph, sequence)


def build_loss(graph: Fields) -> "Loss":
    """The loss of a graph: called with the network's output and the targets."""
    return Loss(graph)


def build_optimiser(parameters: Iterable[nn.Parameter], job: Fields) -> torch.optim.Optimizer:
    """The optimiser of a job: ``sgd`` (with momentum), ``adam`` or ``adamw``."""
    name, rate = job["name"], job["learning_rate"]
    decay = job.get("weight_decay", 0.0)
    if name == "sgd":
        momentum = job.get("momentum", 0.0)
        return torch.optim.SGD(parameters, lr=rate, momentum=momentum, weight_decay=decay)
    if name == "adam":
        return torch.optim.Adam(parameters, lr=rate, weight_decay=decay)
    if name == "adamw":
        return torch.optim.AdamW(parameters, lr=rate, weight_decay=decay)
    raise ValueError(f"no optimiser named '{name}'; there are: sgd, adam, adamw")


class Network(nn.Module):
    """Runs the nodes of a graph in order; inputs come in the order of the graph.

    The output is what the loss reads: one tensor, or a list where there are several heads.
    """

    def __init__(self, graph: Fields, sequence: int) -> None:
        super().__init__()
        nodes, _, self._outputs = split_loss(graph)
        read = {name for node in nodes for name in node["inputs"]} | set(self._outputs)
        self.input_names = [name for name in graph["inputs"] if name in read]
        self._steps: list[tuple[str, nn.Module, list[str]]] = []
        values = {name: meta_input(graph["inputs"][name], sequence) for name in self.input_names}
        modules: dict[str, nn.Module] = {}
        for node in nodes:
            inputs = [values[name] for name in node["inputs"]]
            module = build_node(node, [tuple(value.shape[1:]) for value in inputs])
            shared = node.get("shares_weights_with")
            if shared:
                share_weights(module, modules[shared], node["name"], shared)
            modules[node["name"]] = module
            add_nested(self, node["name"], module)
            self._steps.append((node["name"], module, node["inputs"]))
            values[node["name"]] = run_on_meta(module, inputs)
        self._last_use = {name: index for index, step in enumerate(self._steps) for name in step[2]}

    def node_parameters(self, name: str) -> list[tuple[str, nn.Parameter]]:
        """Name and value of each parameter of a node; none for a node of the loss."""
        for step_name, module, _ in self._steps:
            if step_name == name:
                return list(module.named_parameters())
        return []

    def forward(self, *inputs: Tensor) -> Any:
        """The scores of a batch; values are dropped after their last use."""
        values = dict(zip(self.input_names, inputs, strict=True))
        for index, (name, module, reads) in enumerate(self._steps):
            values[name] = module(*[values[read] for read in reads])
            for read in set(reads):
                if self._last_use[read] == index and read not in self._outputs:
                    del values[read]
        outputs = [values[name] for name in self._outputs]
        return outputs[0] if len(outputs) == 1 else outputs


class Loss(nn.Module):
    """The loss nodes of a graph, run on the network's output and the targets.

    A graph without a loss is trained on the mean of its output, which needs no targets.
    """

    def __init__(self, graph: Fields) -> None:
        super().__init__()
        _, self._nodes, self._scores = split_loss(graph)
        scored = set(self._scores) | {node["name"] for node in self._nodes}
        reads = (name for node in self._nodes for name in node["inputs"])
        self.target_names = list(dict.fromkeys(name for name in reads if name not in scored))
        self._output = graph["output"]

    def forward(self, output: Any, *targets: Tensor) -> Tensor:
        """One number to minimise."""
        scores = output if isinstance(output, list) else [output]
        values = dict(zip(self._scores, scores, strict=True))
        if not self._nodes:
            return sum((value.float().mean() for value in scores[1:]), scores[0].float().mean())
        values |= dict(zip(self.target_names, targets, strict=True))
        for node in self._nodes:
            inputs = [values[name] for name in node["inputs"]]
            if node["op"] == "cross_entropy":
                values[node["name"]] = cross_entropy(*inputs)
            else:
                weighted = zip(node["weights"], inputs, strict=True)
                values[node["name"]] = sum(weight * value for weight, value in weighted)
        return values[self._output]


def cross_entropy(scores: Tensor, targets: Tensor) -> Tensor:
    """Mean cross entropy in 32 bits, classes in the last dimension of the scores."""
    return F.cross_entropy(scores.float().reshape(-1, scores.shape[-1]), targets.reshape(-1))


def split_loss(graph: Fields) -> tuple[list[Fields], list[Fields], list[str]]:
    """Nodes of the network, nodes of the loss, and the names the loss reads of the network."""
    network = [node for node in graph["nodes"] if node["op"] not in LOSSES]
    loss = [node for node in graph["nodes"] if node["op"] in LOSSES]
    if not loss:
        return network, loss, [graph["output"]]
    made = {node["name"] for node in network}
    reads = (name for node in loss for name in node["inputs"])
    return network, loss, list(dict.fromkeys(name for name in reads if name in made))


def build_node(node: Fields, shapes: Shapes) -> nn.Module:
    """The module of one node, given the shapes of its inputs for one sample."""
    if node["op"] not in BUILDERS:
        raise ValueError(f"node '{node['name']}': PyTorch worker has no operation '{node['op']}'")
    return BUILDERS[node["op"]](node, shapes)


def meta_input(spec: Fields, sequence: int) -> Tensor:
    """A tensor without memory of two samples of an input."""
    shape = [sequence if size == "sequence" else size for size in spec["shape"]]
    dtype = torch.float32 if spec["dtype"].startswith("float") else torch.int64
    return torch.empty(2, *shape, dtype=dtype, device="meta")


def run_on_meta(module: nn.Module, inputs: list[Tensor]) -> Tensor:
    """The module's result in shape only; its own weights and statistics stay untouched."""
    state = {name: tensor.detach().to("meta") for name, tensor in named_tensors(module)}
    return torch.func.functional_call(module, state, tuple(inputs)).detach()


def named_tensors(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Parameters and buffers."""
    yield from module.named_parameters()
    yield from module.named_buffers()


def share_weights(module: nn.Module, owner: nn.Module, name: str, owner_name: str) -> None:
    """Let ``module`` use the parameters of ``owner`` in place of its own of the same name."""
    for parameter_name, parameter in list(module.named_parameters()):
        holder_name, _, attribute = parameter_name.rpartition(".")
        try:
            shared = owner.get_parameter(parameter_name)
        except AttributeError:
            continue
        if shared.shape != parameter.shape:
            raise ValueError(
                f"node '{name}' cannot share the {attribute} of '{owner_name}': "
                f"{tuple(parameter.shape)} is not {tuple(shared.shape)}"
            )
        setattr(module.get_submodule(holder_name), attribute, shared)


def add_nested(root: nn.Module, name: str, module: nn.Module) -> None:
    """Put ``module`` at the dotted path ``name`` below ``root``."""
    *path, last = name.split(".")
    holder = root
    for part in path:
        if part not in holder._modules:
            holder.add_module(part, nn.Module())
        holder = holder.get_submodule(part)
    if last in holder._modules:
        raise ValueError(f"node name '{name}' is taken, or is the beginning of another's")
    holder.add_module(last, module)


def builds(op: str) -> Callable[[Callable[..., nn.Module]], Callable[..., nn.Module]]:
    """Register the builder of an operation."""

    def register(builder: Callable[[Fields, Shapes], nn.Module]) -> Callable[..., nn.Module]:
        BUILDERS[op] = builder
        return builder

    return register


class Apply(nn.Module):
    """A function without weights as a module."""

    def __init__(self, function: Callable[..., Tensor], label: str) -> None:
        super().__init__()
        self._function, self._label = function, label

    def forward(self, *inputs: Tensor) -> Tensor:
        """The function's result."""
        return self._function(*inputs)

    def extra_repr(self) -> str:
        """What the function is called."""
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


@builds("linear")
def _linear(node: Fields, shapes: Shapes) -> nn.Module:
    return nn.Linear(shapes[0][-1], node["out_features"], bias=node["bias"])


@builds("embedding")
def _embedding(node: Fields, _: Shapes) -> nn.Module:
    return nn.Embedding(node["vocabulary"], node["width"])


@builds("position_embedding")
class PositionEmbedding(nn.Module):
    """Adds a learned row per position."""

    def __init__(self, node: Fields, shapes: Shapes) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(node["length"], shapes[0][-1]) * 0.02)

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens of shape (..., positions, width)."""
        return tokens + self.weight[: tokens.shape[-2]]


@builds("batch_norm")
def _batch_norm(_: Fields, shapes: Shapes) -> nn.Module:
    kinds = (nn.BatchNorm1d, nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
    return kinds[len(shapes[0]) - 1](shapes[0][0])


@builds("group_norm")
def _group_norm(node: Fields, shapes: Shapes) -> nn.Module:
    return nn.GroupNorm(node["groups"], shapes[0][0])


@builds("layer_norm")
def _layer_norm(node: Fields, shapes: Shapes) -> nn.Module:
    return nn.LayerNorm(shapes[0][-1], bias=node.get("bias", True))


@builds("rms_norm")
def _rms_norm(_: Fields, shapes: Shapes) -> nn.Module:
    return nn.RMSNorm(shapes[0][-1], eps=1e-6)


@builds("local_response_norm")
def _local_response_norm(node: Fields, _: Shapes) -> nn.Module:
    return nn.LocalResponseNorm(node["size"], alpha=1e-4, beta=0.75, k=2.0)


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
}
"""Every activation of the graph."""


@builds("activation")
def _activation(node: Fields, _: Shapes) -> nn.Module:
    return ACTIVATIONS[node["function"]]()


@builds("dropout")
def _dropout(node: Fields, _: Shapes) -> nn.Module:
    return nn.Dropout(node["probability"])


@builds("max_pool")
def _max_pool(node: Fields, _: Shapes) -> nn.Module:
    return _pool(node, (nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d))


@builds("avg_pool")
def _avg_pool(node: Fields, _: Shapes) -> nn.Module:
    return _pool(node, (nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d))


def _pool(node: Fields, kinds: tuple[Callable[..., nn.Module], ...]) -> nn.Module:
    return kinds[len(node["kernel"]) - 1](
        tuple(node["kernel"]),
        stride=tuple(node["stride"]),
        padding=tuple(node["padding"]),
        ceil_mode=node["ceil"],
    )


@builds("global_avg_pool")
def _global_avg_pool(_: Fields, shapes: Shapes) -> nn.Module:
    axes = tuple(range(2, len(shapes[0]) + 1))
    return Apply(lambda x: x.mean(dim=axes), "mean over positions")


@builds("add")
def _add(_: Fields, shapes: Shapes) -> nn.Module:
    return Apply(lambda first, *others: sum(others, first), f"sum of {len(shapes)}")


@builds("multiply")
def _multiply(_: Fields, shapes: Shapes) -> nn.Module:
    missing = (1,) * (len(shapes[0]) - len(shapes[1]))
    return Apply(lambda x, y: x * y.reshape(*y.shape, *missing), "product")


@builds("flatten")
def _flatten(node: Fields, _: Shapes) -> nn.Module:
    return nn.Flatten(1 + node.get("start_axis", 0))


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
        """Positions taken, channels padded."""
        return F.pad(x[self._taken], self._padding)
