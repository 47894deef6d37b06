"""Users' models as layer graphs: PyTorch modules, ONNX files, Hugging Face configurations.

`capture` runs one forward and backward pass of a module on fake tensors and records the
operations of each submodule. PyTorch and onnx are imported only when a model needs them.
"""

from typing import TYPE_CHECKING, Any

from paceline.workload.capture.inputs import InputShape, parse_input
from paceline.workload.capture.user_model import load_user_model
from paceline.workload.capture_notes import capture_notes, unknown_operations
from paceline.workload.graph import Graph

if TYPE_CHECKING:
    import torch

__all__ = [
    "InputShape",
    "capture",
    "capture_notes",
    "load_user_model",
    "parse_input",
    "unknown_operations",
]


def capture(module: "torch.nn.Module", example_inputs: Any, name: str | None = None) -> Graph:
    """Capture a ``torch.nn.Module`` as a layer graph, without memory and without data.

    ``example_inputs`` is a tensor, a tuple of positional tensors, or a mapping of keyword
    tensors; only shapes and types matter, and the first dimension of the first tensor is the
    batch. The module is not changed. `unknown_operations` lists operations whose cost is
    estimated from their bytes only, `capture_notes` other uncertainties.
    """
    from paceline.workload.capture.fake import ExampleInputs, plain_module
    from paceline.workload.capture.steps import capture_module

    module = plain_module(module)
    return capture_module(module, ExampleInputs(example_inputs), name or type(module).__name__)
