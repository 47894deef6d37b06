"""Copy a model and its inputs to fake tensors and record one training step."""

import contextlib
import copy
import dataclasses
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from paceline.errors import InputError
from paceline.workload.capture.construction import (
    CONSTANTS_OF_STEPS,
    MemorylessMode,
    copying,
    fake_tensor,
    quietly,
)
from paceline.workload.capture.error_messages import LAZY, LAZY_HINT, explained
from paceline.workload.capture.recorder import Recorder
from paceline.workload.capture.recording import RecordedStep


def plain_module(module: Any) -> Any:
    """The module inside wrappers of ``torch.compile`` and data parallelism."""
    wrappers = (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)
    while True:
        if isinstance(module, wrappers):
            module = module.module
        elif hasattr(module, "_orig_mod"):
            module = module._orig_mod
        else:
            return module


def fake_copy(module: Any, mode: Any) -> Any:
    """Copy ``module`` to fake tensors; tied tensors stay tied."""
    if any(map(torch.nn.parameter.is_lazy, (*module.parameters(), *module.buffers()))):
        raise InputError(f"{type(module).__name__} {LAZY}", LAZY_HINT)
    with mode, mode.constants_up_to(CONSTANTS_OF_STEPS), copying():
        memo = {
            id(tensor): fake_tensor(tensor) for tensor in (*module.parameters(), *module.buffers())
        }
        try:
            return copy.deepcopy(module, memo)
        except Exception as error:
            raise InputError(
                f"{type(module).__name__} cannot be copied: {error}",
                "give a file and a function that returns the model: model.py:make_model",
            ) from error


class ExampleInputs:
    """Arguments of a model: a tensor, positional tensors, keyword tensors, or both.

    The first dimension of the first tensor is the batch; other tensors with the same first
    dimension grow with it. For a list of samples with a list of targets of the same length, a
    mapping each (the detection networks of torchvision), that length is the batch.
    """

    def __init__(self, example: Any, keywords: Mapping[str, Any] | None = None) -> None:
        self._args: tuple[Any, ...] = ()
        self._kwargs: dict[str, Any] = dict(keywords or {})
        if isinstance(example, Mapping):
            self._kwargs = dict(example)
        elif isinstance(example, list | tuple):
            self._args = tuple(example)
        else:
            self._args = (example,)
        tensors = self.tensors()
        if not tensors:
            kinds = {type(one).__name__ for one in (*self._args, *self._kwargs.values())}
            raise InputError(
                f"the example inputs ({', '.join(sorted(kinds))}) contain no tensor",
                "give one, such as 32x3x224x224; register a container of tensors with "
                "torch.utils._pytree.register_pytree_node",
            )
        if any(tensor.dim() == 0 for tensor in tensors[:1]) or 0 in tensors[0].shape:
            raise InputError(
                f"the first input has no batch dimension: shape {tuple(tensors[0].shape)}",
                "put the batch first, such as 32x3x224x224",
            )
        first, *others = (*self._args, *self._kwargs.values())
        self._is_list = isinstance(first, list) and any(
            isinstance(other, list)
            and len(other) == len(first)
            and all(isinstance(target, Mapping) for target in other)
            for other in others
        )
        self.batch = len(first) if self._is_list else int(tensors[0].shape[0])

    @property
    def has_data(self) -> bool:
        return all(
            type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.device.type == "cpu"
            for tensor in self.tensors()
        )

    def tensors(self) -> list[Any]:
        leaves = tree_leaves((self._args, self._kwargs))
        return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]

    def fake(self, batch: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments for another batch; without memory inside a fake mode."""

        def made(leaf: Any, shape: Sequence[int]) -> Any:
            return torch.empty(shape, dtype=leaf.dtype).requires_grad_(leaf.requires_grad)

        return self._for_batch(batch, made)

    def real(self, batch: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments for another batch, with the example's values repeated."""

        def made(leaf: Any, shape: Sequence[int]) -> Any:
            if shape and shape[0] != leaf.shape[0]:
                leaf = torch.cat([leaf] * -(-shape[0] // leaf.shape[0]))[: shape[0]]
            return leaf.detach().clone().requires_grad_(leaf.requires_grad)

        return self._for_batch(batch, made)

    def _for_batch(
        self, batch: int, made: Callable[[Any, Sequence[int]], Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        def resized(leaf: Any) -> Any:
            if not isinstance(leaf, torch.Tensor):
                return leaf
            shape = list(leaf.shape)
            if shape and shape[0] == self.batch and not self._is_list:
                shape[0] = batch
            return made(leaf, shape)

        def longer(argument: Any) -> Any:
            if self._is_list and isinstance(argument, list) and len(argument) == self.batch:
                return (argument * -(-batch // self.batch))[:batch]
            return argument

        args = tuple(map(longer, self._args))
        kwargs = {name: longer(value) for name, value in self._kwargs.items()}
        args, kwargs = tree_map(resized, (args, kwargs))
        return args, kwargs


def record_step(
    model: Any, inputs: ExampleInputs, batch: int, mode: MemorylessMode | None
) -> RecordedStep:
    """Record one forward and backward pass of ``model`` in training mode.

    Without a mode the step runs on the example's values.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(quietly())
        stack.enter_context(warnings.catch_warnings())
        stack.enter_context(explained(type(model).__name__))
        if mode is not None:
            stack.enter_context(mode)
            stack.enter_context(mode.constants_up_to(CONSTANTS_OF_STEPS))
        warnings.simplefilter("ignore")
        model.train()
        model.zero_grad(set_to_none=True)
        args, kwargs = inputs.real(batch) if mode is None else inputs.fake(batch)
        leaves = tree_leaves((args, kwargs))
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        names = _input_names(len(tensors), kwargs)
        recorder = Recorder(model, dict(zip(names, tensors, strict=True)), batch)
        with recorder.watching():
            output = model(*args, **kwargs)
        targets = trained_outputs(output)
        seeds = [torch.ones_like(target) for target in targets]
        with recorder.watching():
            torch.autograd.backward(targets, seeds)
    if not targets and any(parameter.requires_grad for parameter in model.parameters()):
        raise InputError(
            f"no output of {type(model).__name__} depends on its trainable parameters",
            "return the output or the loss without detach and no_grad",
        )
    return recorder.recording()


def _input_names(count: int, kwargs: Mapping[str, Any]) -> list[str]:
    plain = [name for name, value in kwargs.items() if isinstance(value, torch.Tensor)]
    if len(plain) == count:
        return plain
    return ["input"] if count == 1 else [f"input_{number}" for number in range(1, count + 1)]


def trained_outputs(output: Any) -> list[Any]:
    """Outputs with a gradient; only the loss if the output has one."""
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
