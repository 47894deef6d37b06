"""Capture a module on fake tensors, or from one real step if it reads tensor values."""

import copy
from collections.abc import Sequence
from typing import Any

import torch

from paceline.errors import InputError
from paceline.units import format_bytes
from paceline.workload.capture.construction import MemorylessMode
from paceline.workload.capture.describe import described, same_operations
from paceline.workload.capture.error_messages import NeedsDataError
from paceline.workload.capture.fake import ExampleInputs, fake_copy, record_step
from paceline.workload.graph import Graph

REAL_BYTES_ALLOWED = 2**32
"""Largest weights of a model that is run once on real data."""

RANDOM_NOTE = "the operations that run depend on a random number, assumed to be 0.5"
REAL_STEP_NOTE = (
    "the operations that run depend on tensor values, so one training step was run on the example "
    "inputs; other inputs may cost more or less"
)


def capture_module(
    module: Any, inputs: ExampleInputs, name: str, notes: Sequence[str] = ()
) -> Graph:
    """Capture a module with real or fake tensors; it is not changed."""
    mode = MemorylessMode()
    try:
        graph = _recorded(fake_copy(module, mode), inputs, mode, name, notes)
    except NeedsDataError:
        if not inputs.has_data or not _has_memory(module):
            raise
        return _recorded(copy.deepcopy(module), inputs, None, name, (*notes, REAL_STEP_NOTE))
    return graph


def _recorded(
    module: Any, inputs: ExampleInputs, mode: MemorylessMode | None, name: str, notes: Sequence[str]
) -> Graph:
    # TorchScript optimises a graph after its first run, so the second would differ.
    with torch.jit.optimized_execution(False):
        first = record_step(module, inputs, inputs.batch, mode)
        try:
            second = record_step(module, inputs, 2 * inputs.batch, mode)
        except InputError:
            second = None  # the batch size is fixed in the model
        if second is not None and not same_operations(first, second):
            first = record_step(module, inputs, inputs.batch, mode)  # the first run filled caches
    if mode is not None and mode.random_choices:
        notes = (*notes, RANDOM_NOTE)
    return described(name, first, second, notes)


def _has_memory(module: Any) -> bool:
    """Whether every weight holds values; raise if they are too large for a real step."""
    tensors = (*module.parameters(), *module.buffers())
    if any(tensor.device.type != "cpu" or not _is_plain(tensor) for tensor in tensors):
        return False
    size = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
    if size > REAL_BYTES_ALLOWED:
        raise InputError(
            f"{type(module).__name__} reads tensor values, and its weights are too large for a "
            f"real step: {format_bytes(size)} (maximum {format_bytes(REAL_BYTES_ALLOWED)})",
            "use a smaller model, for example fewer layers of the same width",
        )
    return True


def _is_plain(tensor: Any) -> bool:
    from torch._subclasses.fake_tensor import FakeTensor

    return not isinstance(tensor, FakeTensor)
