"""A module as a graph: recorded without data where that can be, else from one real step."""

import copy
from collections.abc import Sequence
from typing import Any

import torch

from paceline.errors import InputError
from paceline.units import format_bytes
from paceline.workload.capture.construction import MemorylessMode
from paceline.workload.capture.describe import alike, described
from paceline.workload.capture.fake import ExampleInputs, fake_copy, record_step
from paceline.workload.capture.problems import NeedsDataError
from paceline.workload.graph import Graph

REAL_BYTES_ALLOWED = 2**32
"""Weights that a model may hold in memory to be run once on real data."""

RANDOM_NOTE = "a random number decides what runs; it is taken to be 0.5"
REAL_STEP_NOTE = (
    "what runs depends on values, so one training step was run on the example's data; "
    "other data may do more or less"
)


def capture_module(
    module: Any, inputs: ExampleInputs, name: str, notes: Sequence[str] = ()
) -> Graph:
    """The graph of a module with memory or without; it is not changed."""
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
    # TorchScript would run other operations the second time: it optimises what ran once.
    with torch.jit.optimized_execution(False):
        first = record_step(module, inputs, inputs.batch, mode)
        try:
            second = record_step(module, inputs, 2 * inputs.batch, mode)
        except InputError:
            second = None  # a batch size is written into the model
        if second is not None and not alike(first, second):
            first = record_step(module, inputs, inputs.batch, mode)  # tables were made once
    if mode is not None and mode.random_choices:
        notes = (*notes, RANDOM_NOTE)
    return described(name, first, second, notes)


def _has_memory(module: Any) -> bool:
    """Whether every weight holds values; refused where they are too many to run."""
    tensors = (*module.parameters(), *module.buffers())
    if any(tensor.device.type != "cpu" or not _is_plain(tensor) for tensor in tensors):
        return False
    size = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
    if size > REAL_BYTES_ALLOWED:
        raise InputError(
            f"what {type(module).__name__} does depends on values, and its weights of "
            f"{format_bytes(size)} are too many to run it once",
            "make a smaller one: fewer layers of the same width, say",
        )
    return True


def _is_plain(tensor: Any) -> bool:
    from torch._subclasses.fake_tensor import FakeTensor

    return not isinstance(tensor, FakeTensor)
