"""Networks of the zoo compared with the counts of PyTorch for modules built from them.

FLOP are those of `FlopCounterMode` on the meta device, where attention is unfused and therefore
counted. Kept activations are the storages that
autograd saves on fake CPU tensors, where attention is fused. Two corrections are made to the
counter and shown: it multiplies the weight gradient of a grouped convolution by the number of
groups, and it drops fused attention (and oneDNN's LSTM) on CPU tensors.
"""

import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from paceline.frameworks.command import search_path
from paceline.frameworks.framework_registry import framework
from paceline.workload import Graph, zoo

SHORT_SEQUENCE = 128
"""Arbitrary sequence length for the shapes of a network that is built."""


@dataclass(frozen=True)
class NetworkCounts:
    """Counts of one training step of a network; None if not counted."""

    parameters: int
    forward_flops: float
    training_flops: float
    activation_bytes: float | None = None


@dataclass(frozen=True)
class WorkloadCheck:
    """One network: counts of its graph, of PyTorch, and of the captured graph.

    ``uncorrected_training_flops`` is PyTorch's counter on fake CPU tensors as it is.
    """

    model: str
    batch: int
    graph: NetworkCounts
    torch: NetworkCounts
    captured: NetworkCounts
    uncorrected_training_flops: float

    @property
    def forward_ratio(self) -> float:
        """FLOP of the forward pass by the graph over those by PyTorch."""
        return self.graph.forward_flops / self.torch.forward_flops

    @property
    def training_ratio(self) -> float:
        """FLOP of the forward and backward pass by the graph over those by PyTorch."""
        return self.graph.training_flops / self.torch.training_flops

    @property
    def captured_ratio(self) -> float:
        """FLOP of the forward and backward pass as captured over those by the graph."""
        return self.captured.training_flops / self.graph.training_flops

    @property
    def activation_ratio(self) -> float:
        """Bytes kept for backward by the graph over those PyTorch keeps on a CPU."""
        assert self.graph.activation_bytes is not None and self.torch.activation_bytes
        return self.graph.activation_bytes / self.torch.activation_bytes


def check(model: str, batch: int = 2) -> WorkloadCheck:
    """Compare one network of the zoo with PyTorch, at its published sequence length."""
    graph = zoo.build(model)
    cost = graph.cost(batch)
    forward, training = _counted_on_meta(graph, batch)
    kept, uncorrected = _counted_on_cpu(graph, batch)
    captured = _captured(graph, batch).cost(batch)
    return WorkloadCheck(
        model=model,
        batch=batch,
        graph=NetworkCounts(
            cost.parameters,
            float(cost.forward_flops),
            float(cost.training_flops),
            float(cost.activation_bytes),
        ),
        torch=NetworkCounts(_parameters(graph), forward, training, kept),
        captured=NetworkCounts(
            captured.parameters, float(captured.forward_flops), float(captured.training_flops)
        ),
        uncorrected_training_flops=uncorrected,
    )


def training_module(graph: Graph) -> Any:
    """The network and its loss as one module that takes every input of the graph by name."""
    import torch

    torch_model = _builder()
    document = graph.to_json()

    class Training(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.network = torch_model.build(document, SHORT_SEQUENCE)
            self.loss = torch_model.build_loss(document)

        def forward(self, **inputs: Any) -> Any:
            scores = self.network(*[inputs[name] for name in self.network.input_names])
            return self.loss(scores, *[inputs[name] for name in self.loss.target_names])

    return Training()


def example_inputs(graph: Graph, batch: int, device: str) -> dict[str, Any]:
    """Tensors for every input of a graph."""
    import torch

    inputs = {}
    for name, spec in graph.inputs.items():
        shape = [graph.sequence if size == "sequence" else size for size in spec.shape]
        dtype = torch.float32 if spec.dtype == "float" else torch.int64
        inputs[name] = torch.empty(batch, *shape, dtype=dtype, device=device)
    return inputs


def _builder() -> Any:
    """The worker's builder; workers import modules of their folders by bare names."""
    folders = [str(folder) for folder in search_path(framework("torch-ddp"))]
    sys.path[:0] = [folder for folder in folders if folder not in sys.path]
    return importlib.import_module("torch_model")


def _parameters(graph: Graph) -> int:
    import torch

    with torch.device("meta"):
        return sum(p.numel() for p in training_module(graph).parameters())


def _counted_on_meta(graph: Graph, batch: int) -> tuple[int, int]:
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    corrected = {torch.ops.aten.convolution_backward: convolution_backward_flops}
    with torch.device("meta"):
        module = training_module(graph)
        inputs = example_inputs(graph, batch, "meta")
        with FlopCounterMode(display=False, custom_mapping=corrected) as counter:
            loss = module(**inputs)
            forward = counter.get_total_flops()
            loss.backward()
            return forward, counter.get_total_flops()


def _counted_on_cpu(graph: Graph, batch: int) -> tuple[int, int]:
    """Bytes of the storages that autograd keeps, weights excepted, and the counter as it is."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.utils.flop_counter import FlopCounterMode

    kept: dict[int, Any] = {}
    with FakeTensorMode():
        module = training_module(graph)
        own = {t.untyped_storage()._cdata for t in (*module.parameters(), *module.buffers())}

        def keep(tensor: Any) -> Any:
            storage = tensor.untyped_storage()
            if storage._cdata not in own:
                kept[storage._cdata] = storage
            return tensor

        inputs = example_inputs(graph, batch, "cpu")
        with FlopCounterMode(display=False) as counter:
            with torch.autograd.graph.saved_tensors_hooks(keep, _as_it_is):
                loss = module(**inputs)
            loss.backward()
    return sum(storage.nbytes() for storage in kept.values()), counter.get_total_flops()


def _as_it_is(tensor: Any) -> Any:
    return tensor


def _captured(graph: Graph, batch: int) -> Graph:
    import torch

    from paceline.workload.capture import capture

    with torch.device("meta"):
        module = training_module(graph)
    return capture(module, example_inputs(graph, batch, "meta"), graph.name)


def convolution_backward_flops(
    gradient: Sequence[int],
    images: Sequence[int],
    weight: Sequence[int],
    *arguments: Any,
    out_shape: Any = None,
) -> int:
    """PyTorch's own formula, its weight gradient divided by the number of groups."""
    from torch.utils.flop_counter import conv_backward_flop

    *settings, groups, wanted = arguments
    formula: Callable[..., int] = conv_backward_flop.__wrapped__

    def count(mask: Sequence[bool]) -> int:
        return formula(gradient, images, weight, *settings, groups, mask, out_shape=out_shape)

    of_inputs, of_weights = [wanted[0], False, False], [False, wanted[1], False]
    return count(of_inputs) + count(of_weights) // int(groups)
