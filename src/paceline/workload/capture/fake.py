"""Models and inputs without memory, and one training step run on them."""

import copy
import dataclasses
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_leaves, tree_map

from paceline.errors import InputError
from paceline.workload.capture.problems import LAZY, LAZY_HINT, explained
from paceline.workload.capture.recorder import Recorder
from paceline.workload.capture.recording import RecordedStep


def fake_mode() -> Any:
    """A mode in which tensors have shapes and no memory; real ones that turn up are converted."""
    return FakeTensorMode(allow_non_fake_inputs=True)


def plain_module(module: Any) -> Any:
    """The module itself where ``torch.compile`` or a parallel wrapper surrounds it."""
    wrappers = (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)
    while True:
        if isinstance(module, wrappers):
            module = module.module
        elif hasattr(module, "_orig_mod"):
            module = module._orig_mod
        else:
            return module


def fake_copy(module: Any, mode: Any) -> Any:
    """A copy of ``module`` whose tensors take no memory; tied ones stay tied."""
    if any(map(torch.nn.parameter.is_lazy, (*module.parameters(), *module.buffers()))):
        raise InputError(f"{type(module).__name__} {LAZY}", LAZY_HINT)
    with mode:
        memo = {
            id(tensor): fake_tensor(tensor) for tensor in (*module.parameters(), *module.buffers())
        }
        try:
            return copy.deepcopy(module, memo)
        except Exception as error:
            raise InputError(
                f"{type(module).__name__} cannot be copied: {error}",
                "give a file and a function that makes the model: model.py:make_model",
            ) from error


def fake_tensor(tensor: Any) -> Any:
    """A tensor like ``tensor`` on the CPU, without memory under a fake mode."""
    empty = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cpu")
    if isinstance(tensor, torch.nn.Parameter):
        return torch.nn.Parameter(empty, requires_grad=tensor.requires_grad)
    return empty.requires_grad_(tensor.requires_grad)


class ExampleInputs:
    """What a model is called with: a tensor, positional tensors, or keyword tensors.

    The first dimension of the first tensor is the batch; other tensors with the same first
    dimension grow with it.
    """

    def __init__(self, example: Any) -> None:
        self._args: tuple[Any, ...] = ()
        self._kwargs: dict[str, Any] = {}
        if isinstance(example, Mapping):
            self._kwargs = dict(example)
        elif isinstance(example, list | tuple):
            self._args = tuple(example)
        else:
            self._args = (example,)
        tensors = self.tensors()
        if not tensors:
            raise InputError("the example inputs hold no tensor", "give one, such as 32x3x224x224")
        if any(tensor.dim() == 0 for tensor in tensors[:1]) or 0 in tensors[0].shape:
            raise InputError(
                f"the first input has shape {tuple(tensors[0].shape)}, so there is no batch",
                "its first dimension must be the batch, as in 32x3x224x224",
            )
        self.batch = int(tensors[0].shape[0])

    def tensors(self) -> list[Any]:
        """Every tensor, in the order of the call."""
        leaves = tree_leaves((self._args, self._kwargs))
        return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]

    def fake(self, batch: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments of the call for another batch, without memory under a fake mode."""

        def resized(leaf: Any) -> Any:
            if not isinstance(leaf, torch.Tensor):
                return leaf
            shape = list(leaf.shape)
            if shape and shape[0] == self.batch:
                shape[0] = batch
            return torch.empty(shape, dtype=leaf.dtype).requires_grad_(leaf.requires_grad)

        args, kwargs = tree_map(resized, (self._args, self._kwargs))
        return args, kwargs


def record_step(model: Any, inputs: ExampleInputs, batch: int, mode: Any) -> RecordedStep:
    """One forward and backward pass of ``model`` in training mode, as it was seen."""
    with mode, warnings.catch_warnings(), explained(type(model).__name__):
        warnings.simplefilter("ignore")
        model.train()
        model.zero_grad(set_to_none=True)
        args, kwargs = inputs.fake(batch)
        leaves = tree_leaves((args, kwargs))
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        names = _input_names(len(tensors), kwargs)
        recorder = Recorder(model, dict(zip(names, tensors, strict=True)), batch)
        with recorder.watching():
            output = model(*args, **kwargs)
        targets = _trained_outputs(output)
        seeds = [torch.ones_like(target) for target in targets]
        with recorder.watching():
            torch.autograd.backward(targets, seeds)
    if not targets and any(parameter.requires_grad for parameter in model.parameters()):
        raise InputError(
            f"nothing that {type(model).__name__} returns depends on its trainable parameters",
            "return the output or the loss itself, not detached and not made under no_grad",
        )
    return recorder.recording()


def _input_names(count: int, kwargs: Mapping[str, Any]) -> list[str]:
    plain = [name for name, value in kwargs.items() if isinstance(value, torch.Tensor)]
    if len(plain) == count:
        return plain
    return ["input"] if count == 1 else [f"input_{number}" for number in range(1, count + 1)]


def _trained_outputs(output: Any) -> list[Any]:
    """Outputs with a gradient; the loss alone where the output names one."""
    loss = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    if isinstance(loss, torch.Tensor) and loss.requires_grad:
        return [loss]
    found = {id(tensor): tensor for tensor in _tensors_in(output, set())}
    return [
        tensor
        for tensor in found.values()
        if tensor.requires_grad and (tensor.is_floating_point() or tensor.is_complex())
    ]


def _tensors_in(value: Any, seen: set[int]) -> Iterator[Any]:
    if isinstance(value, torch.Tensor):
        yield value
        return
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, Mapping):
        parts: Any = value.values()
    elif isinstance(value, list | tuple | set):
        parts = value
    elif dataclasses.is_dataclass(value):
        parts = (getattr(value, f.name) for f in dataclasses.fields(value))
    else:
        parts = vars(value).values() if hasattr(value, "__dict__") else ()
    for part in parts:
        yield from _tensors_in(part, seen)


def made_under(mode: Any, make: Callable[[], Any], label: str) -> Any:
    """What ``make`` returns, its tensors made without memory; errors name the place."""
    with mode, warnings.catch_warnings(), explained(label):
        warnings.simplefilter("ignore")
        return make()
