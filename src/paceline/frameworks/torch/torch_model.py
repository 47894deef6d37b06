"""Builds a layer graph (its JSON form) into PyTorch modules, with its loss and its optimiser.

PyTorch and the standard library only. Each node becomes one module that keeps the node's name
(dots nest: ``layer1.0.conv1``), so that times, parameters and gradients have the names of nodes.
A loss with weights (`adaptive_cross_entropy`) is part of the network, which then reads the targets
too.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
import torch_sequence_layers  # noqa: F401  (registers its builders)
import torch_state_spaces  # noqa: F401  (registers its builders)
from layer_graph import split_loss, weighted_sum
from torch import Tensor, nn
from torch_layers import BUILDERS, Fields, Shapes, has_no_data

ANY_SEQUENCE = 8
"""Sequence length if none is given: no parameter's shape depends on it."""


def build(graph: Fields, sequence: "int | None" = None) -> "Network":
    """The network of a graph without its loss, in training mode, with PyTorch's initial weights.

    Shapes are derived for ``sequence`` tokens, by default the published length of the graph; the
    network runs at any length.
    """
    return Network(graph, sequence or graph.get("sequence") or ANY_SEQUENCE)


def build_loss(graph: Fields) -> "Loss":
    """The loss of a graph as a function of the network's output and the targets."""
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
    raise ValueError(f"unknown optimiser '{name}'; choose sgd, adam or adamw")


class Network(nn.Module):
    """Runs the nodes of a graph in order; inputs are in the order of the graph.

    The output is the input of the loss: a tensor, or a list for several heads.
    """

    def __init__(self, graph: Fields, sequence: int) -> None:
        super().__init__()
        nodes, _, self.outputs = split_loss(graph)
        read = {name for node in nodes for name in node["inputs"]} | set(self.outputs)
        self.input_names = [name for name in graph["inputs"] if name in read]
        self.steps: list[tuple[str, nn.Module, list[str]]] = []
        values = {name: meta_input(graph["inputs"][name], sequence) for name in self.input_names}
        modules: dict[str, nn.Module] = {}
        for node in nodes:
            inputs = [values[name] for name in node["inputs"]]
            module = build_node(node, [tuple(value.shape[1:]) for value in inputs])
            shared = node.get("shares_weights_with")
            if shared:
                share_weights(module, modules[shared], node["name"], shared)
            if node.get("frozen"):
                module.requires_grad_(False)
            modules[node["name"]] = module
            add_nested(self, node["name"], module)
            self.steps.append((node["name"], module, node["inputs"]))
            values[node["name"]] = run_on_meta(module, inputs)
        self._last_use = {name: index for index, step in enumerate(self.steps) for name in step[2]}

    def node_modules(self) -> Iterator[tuple[str, nn.Module]]:
        return ((name, module) for name, module, _ in self.steps)

    def node_parameters(self, name: str) -> list[tuple[str, nn.Parameter]]:
        """Name and value of each parameter of a node; empty for a node of the loss."""
        for step_name, module, _ in self.steps:
            if step_name == name:
                return list(module.named_parameters())
        return []

    def forward(self, *inputs: Tensor) -> Any:
        """The scores of a batch; values are dropped after their last use."""
        values = dict(zip(self.input_names, inputs, strict=True))
        for index, (name, module, reads) in enumerate(self.steps):
            values[name] = module(*[values[read] for read in reads])
            for read in set(reads):
                if self._last_use[read] == index and read not in self.outputs:
                    del values[read]
        outputs = [values[name] for name in self.outputs]
        return outputs[0] if len(outputs) == 1 else outputs


class Loss(nn.Module):
    """The loss nodes of a graph, run on the network's output and the targets.

    The loss of a graph without one is the mean of its output.
    """

    def __init__(self, graph: Fields) -> None:
        super().__init__()
        _, self._nodes, self._scores = split_loss(graph)
        scored = set(self._scores) | {node["name"] for node in self._nodes}
        reads = (name for node in self._nodes for name in node["inputs"])
        self.target_names = list(dict.fromkeys(name for name in reads if name not in scored))
        self._output = graph["output"]

    def forward(self, output: Any, *targets: Tensor) -> Tensor:
        scores = output if isinstance(output, list) else [output]
        values = dict(zip(self._scores, scores, strict=True))
        if not self._nodes:
            return sum((value.float().mean() for value in scores[1:]), scores[0].float().mean())
        values |= dict(zip(self.target_names, targets, strict=True))
        for node in self._nodes:
            inputs = [values[name] for name in node["inputs"]]
            values[node["name"]] = LOSS_FUNCTIONS[node["op"]](node, *inputs)
        return values[self._output]


def cross_entropy(_: Fields, scores: Tensor, targets: Tensor) -> Tensor:
    """Mean cross entropy in 32 bits; classes are the last dimension of the scores."""
    return F.cross_entropy(scores.float().reshape(-1, scores.shape[-1]), targets.reshape(-1))


def elementwise_loss(node: Fields, predicted: Tensor, wanted: Tensor) -> Tensor:
    functions: dict[str, Callable[..., Tensor]] = {
        "smooth_l1": F.smooth_l1_loss,
        "binary_cross_entropy": F.binary_cross_entropy_with_logits,
        "squared_error": F.mse_loss,
    }
    return functions[node["function"]](predicted.float(), wanted.float())


def focal_loss(_: Fields, scores: Tensor, targets: Tensor) -> Tensor:
    """Mean focal loss of sigmoids (Lin et al. 2017), which reduces the weight of easy samples."""
    wanted = F.one_hot(targets, scores.shape[-1]).float()
    entropy = F.binary_cross_entropy_with_logits(scores.float(), wanted, reduction="none")
    return ((1 - (-entropy).exp()) ** 2 * entropy).mean()


def ctc_loss(_: Fields, scores: Tensor, labels: Tensor) -> Tensor:
    """Connectionist temporal classification of frames x classes; class 0 is the blank.

    Tensors without data have no alignments, so their mean is returned.
    """
    frames = torch.full((scores.shape[0],), scores.shape[1])
    lengths = torch.full((labels.shape[0],), labels.shape[1])
    chances = scores.float().log_softmax(-1).transpose(0, 1)
    if has_no_data(chances):
        return -chances.mean()
    return F.ctc_loss(chances, labels.clamp(min=1), frames, lengths, zero_infinity=True)


LOSS_FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    "cross_entropy": cross_entropy,
    "ctc_loss": ctc_loss,
    "elementwise_loss": elementwise_loss,
    "focal_loss": focal_loss,
    "weighted_sum": lambda node, *losses: weighted_sum(node, losses, {}),
}


def build_node(node: Fields, shapes: Shapes) -> nn.Module:
    """The module of one node; ``shapes`` are those of its inputs for one sample."""
    if node["op"] not in BUILDERS:
        raise ValueError(
            f"node '{node['name']}': the PyTorch worker does not support '{node['op']}'"
        )
    return BUILDERS[node["op"]](node, shapes)


def meta_input(spec: Fields, sequence: int) -> Tensor:
    """An input of two samples on the meta device."""
    shape = [sequence if size == "sequence" else size for size in spec["shape"]]
    dtype = torch.float32 if spec["dtype"].startswith("float") else torch.int64
    return torch.empty(2, *shape, dtype=dtype, device="meta")


def run_on_meta(module: nn.Module, inputs: list[Tensor]) -> Tensor:
    """Result of the module on meta tensors; its weights and statistics do not change."""
    state = {name: tensor.detach().to("meta") for name, tensor in named_tensors(module)}
    return torch.func.functional_call(module, state, tuple(inputs)).detach()


def named_tensors(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    yield from module.named_parameters()
    yield from module.named_buffers()


def share_weights(module: nn.Module, owner: nn.Module, name: str, owner_name: str) -> None:
    """Make ``module`` use the tensors of ``owner`` with the same name and shape."""
    theirs = dict(owner.named_parameters())
    common = [
        parameter_name
        for parameter_name, parameter in module.named_parameters()
        if parameter_name in theirs and theirs[parameter_name].shape == parameter.shape
    ]
    if not common:
        raise ValueError(f"node '{name}' has no tensor in common with '{owner_name}'")
    for parameter_name in common:
        module.register_parameter(parameter_name, theirs[parameter_name])


def add_nested(root: nn.Module, name: str, module: nn.Module) -> None:
    """Add ``module`` at the dotted path ``name`` below ``root``."""
    *path, last = name.split(".")
    holder = root
    for part in path:
        if part not in holder._modules:
            holder.add_module(part, nn.Module())
        holder = holder.get_submodule(part)
    if last in holder._modules:
        raise ValueError(f"node name '{name}' is a duplicate or a prefix of another name")
    holder.add_module(last, module)
