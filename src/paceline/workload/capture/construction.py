"""Run constructors of modules on fake tensors.

Copying, casting and moving a module need patches there. So does reading a small constant, as in
``[rate.item() for rate in torch.linspace(0, 0.1, depth)]``: small constants keep their values.
"""

import contextlib
import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._subclasses import fake_tensor as torch_fake
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from paceline.errors import InputError
from paceline.units import format_bytes
from paceline.workload.capture.error_messages import explained

CONSTANTS_OF_CONSTRUCTORS = 2**16
"""Largest constant, in elements, that keeps its values while a model is constructed."""

CONSTANTS_OF_STEPS = 64
"""Largest constant, in elements, that keeps its values while a model runs."""

REAL_BYTES_ALLOWED = 2**32
"""Limit of real memory for a constructor that reads tensor values."""

TYPICAL_DRAW = 0.5
"""Value of a single uniform random number, at which stochastic depth keeps a layer, as usual."""

_CONSTANTS = {
    getattr(torch.ops.aten, name)
    for name in ("linspace", "logspace", "arange", "zeros", "ones", "full", "eye", "scalar_tensor")
}


class MemorylessMode(FakeTensorMode):  # type: ignore[misc]
    """Fake tensors with the values of small constants; real tensors are converted.

    ``random_choices`` counts the random numbers that were read as `TYPICAL_DRAW`.
    """

    def __init__(self) -> None:
        super().__init__(allow_non_fake_inputs=True)
        self.constant_elements = CONSTANTS_OF_STEPS
        self.random_choices = 0
        self._draws: dict[int, Any] = {}

    @contextlib.contextmanager
    def constants_up_to(self, elements: int) -> Iterator[None]:
        """Keep the values of constants of up to ``elements`` elements inside the context."""
        before = self.constant_elements, torch_fake.CONSTANT_NUMEL_LIMIT
        self.constant_elements = torch_fake.CONSTANT_NUMEL_LIMIT = elements
        try:
            yield
        finally:
            self.constant_elements, torch_fake.CONSTANT_NUMEL_LIMIT = before

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Dispatch as PyTorch does, with values of constants and shapes of grouped GEMMs."""
        kwargs = kwargs or {}
        packet = getattr(func, "_overloadpacket", None)
        if packet is torch.ops.aten._grouped_mm:
            return _grouped_product_shape(*args, **kwargs)
        if packet is torch.ops.aten._local_scalar_dense and id(args[0]) in self._draws:
            self.random_choices += 1
        result = super().__torch_dispatch__(func, types, args, kwargs)
        if not isinstance(result, FakeTensor) or result.numel() > self.constant_elements:
            return result
        if result.device.type != "cpu" or self._holds_tensor(args):
            return self._followed(result, args)
        if packet in _CONSTANTS:
            return self._constant(func(*args, **kwargs))
        if packet is torch.ops.aten.rand and result.numel() == 1:
            return self._draw(torch.full(result.shape, TYPICAL_DRAW, dtype=result.dtype))
        return result

    def _constant(self, value: Any) -> Any:
        return self.fake_tensor_converter.from_real_tensor(self, value, make_constant=True)

    def _draw(self, value: Any) -> Any:
        result = self._constant(value)
        self._draws[id(result)] = result
        return result

    def _followed(self, result: Any, args: Any) -> Any:
        """Mark results of random draws as random, unless every draw gives the same result.

        Draws lie in [0, 1), so a comparison with a rate of 0 or 1 has one outcome.
        """
        if self._draws and any(id(part) in self._draws for part in args):
            rates = [part for part in args if isinstance(part, int | float)]
            if not rates or 0 < rates[0] < 1:
                self._draws[id(result)] = result
        return result

    @staticmethod
    def _holds_tensor(args: Any) -> bool:
        return any(isinstance(part, torch.Tensor) for part in args)


def _grouped_product_shape(
    first: Any, second: Any, offsets: Any = None, bias: Any = None, out_dtype: Any = None
) -> Any:
    """Result of a grouped GEMM in any type; PyTorch's meta kernel accepts bfloat16 only."""
    if first.dim() == 2 and second.dim() == 2:
        shape: tuple[int, ...] = (offsets.shape[0], first.shape[0], second.shape[1])
    elif first.dim() == 2:
        shape = (first.shape[0], second.shape[-1])
    elif second.dim() == 2:
        shape = (first.shape[1], second.shape[1])
    else:
        shape = (*first.shape[:2], second.shape[-1])
    return first.new_empty(shape, dtype=out_dtype or first.dtype)


class _RedirectToCpu(TorchFunctionMode):  # type: ignore[misc]
    """Redirect tensors for an accelerator to the CPU: fake tensors need no device."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = {name: _on_cpu(value) for name, value in (kwargs or {}).items()}
        if func is torch.Tensor.cuda:
            return args[0]
        return func(*(_on_cpu(value) for value in args), **kwargs)


def _on_cpu(value: Any) -> Any:
    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device("cpu")
    is_name = isinstance(value, str) and (value == "cuda" or value.startswith("cuda:"))
    return "cpu" if is_name else value


@contextlib.contextmanager
def constructing(mode: MemorylessMode) -> Iterator[None]:
    """Create fake tensors inside the context; modules can be copied, cast and moved."""
    newest: dict[int, tuple[Any, Any]] = {}

    def apply(module: Any, fn: Any, recurse: bool = True) -> Any:
        held = [tensor for tensor in module._parameters.values() if tensor is not None]
        if not all(isinstance(tensor, FakeTensor) for tensor in held):
            return plain_apply(module, fn, recurse)
        for child in module.children() if recurse else ():
            child._apply(fn)
        for name, parameter in module._parameters.items():
            if parameter is not None:
                module._parameters[name] = _converted(parameter, fn, newest)
        for name, buffer in module._buffers.items():
            if buffer is not None:
                module._buffers[name] = fn(buffer)
        return module

    plain_apply = torch.nn.Module._apply
    with contextlib.ExitStack() as stack:
        stack.enter_context(copying())
        stack.enter_context(_replaced(torch.nn.Module, "_apply", apply))
        stack.enter_context(_replaced(torch.nn.init, "_no_grad_trunc_normal_", _same_tensor))
        stack.enter_context(mode.constants_up_to(CONSTANTS_OF_CONSTRUCTORS))
        stack.enter_context(mode)
        stack.enter_context(_RedirectToCpu())
        yield


def _converted(parameter: Any, fn: Any, newest: dict[int, tuple[Any, Any]]) -> Any:
    """Apply ``fn`` to a parameter; one that several modules share stays shared."""
    _, current = newest.get(id(parameter), (None, parameter))
    with torch.no_grad():
        applied = fn(current)
    if applied is not current:
        applied = torch.nn.Parameter(applied, requires_grad=parameter.requires_grad)
    newest[id(parameter)] = (parameter, applied)
    return applied


@contextlib.contextmanager
def copying() -> Iterator[None]:
    """Make ``copy.deepcopy`` return fake tensors, each with its own storage."""

    def deepcopy(tensor: Any, memo: dict[int, Any]) -> Any:
        if id(tensor) not in memo:
            memo[id(tensor)] = _with_values(tensor) if _is_constant(tensor) else fake_tensor(tensor)
        return memo[id(tensor)]

    with (
        _replaced(torch.Tensor, "__deepcopy__", deepcopy),
        _replaced(torch.nn.Parameter, "__deepcopy__", deepcopy),
    ):
        yield


def fake_tensor(tensor: Any) -> Any:
    """A tensor like ``tensor`` on the CPU; without memory inside a fake mode."""
    empty = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cpu")
    if isinstance(tensor, torch.nn.Parameter):
        return torch.nn.Parameter(empty, requires_grad=tensor.requires_grad)
    return empty.requires_grad_(tensor.requires_grad)


def _is_constant(tensor: Any) -> bool:
    """Whether a tensor is small, not trained and has known values."""
    is_known = getattr(tensor, "constant", None) is not None or (
        not isinstance(tensor, FakeTensor) and tensor.device.type == "cpu"
    )
    is_plain = not tensor.requires_grad and not tensor.is_sparse and not tensor.is_quantized
    return is_known and is_plain and tensor.numel() <= CONSTANTS_OF_STEPS


def _with_values(tensor: Any) -> Any:
    values = tensor.constant if isinstance(tensor, FakeTensor) else tensor
    with torch_fake.unset_fake_temporarily():
        numbers = values.tolist()
    return torch.tensor(numbers, dtype=tensor.dtype)


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Redirect a model's output to standard error and silence the log of fake tensors."""
    logger = logging.getLogger(torch_fake.__name__)
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        logger.setLevel(before)


def made_under(mode: MemorylessMode | None, make: Callable[[], Any], label: str) -> Any:
    """Call ``make``; errors name the line of the user's file.

    Tensors are fake inside a mode; without one they are real, within `MemoryBudget`.
    """
    inside = MemoryBudget(label) if mode is None else constructing(mode)
    with quietly(), warnings.catch_warnings(), explained(label), inside:
        warnings.simplefilter("ignore")
        return make()


class MemoryBudget(TorchDispatchMode):  # type: ignore[misc]
    """Limit the real tensors that are created to `REAL_BYTES_ALLOWED`."""

    def __init__(self, label: str) -> None:
        super().__init__()
        self._label, self._bytes = label, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operation if its result fits in the budget."""
        if not any(isinstance(part, torch.Tensor) for part in tree_leaves((args, kwargs))):
            with FakeTensorMode():
                planned = func(*args, **(kwargs or {}))
            if isinstance(planned, torch.Tensor):
                self._bytes += planned.numel() * planned.element_size()
        if self._bytes > REAL_BYTES_ALLOWED:
            raise InputError(
                f"the constructor of {self._label} reads tensor values and needs more than "
                f"{format_bytes(REAL_BYTES_ALLOWED)} of real memory",
                "use a smaller model, for example fewer layers of the same width",
            )
        return func(*args, **(kwargs or {}))


def _same_tensor(tensor: Any, *_: Any, **__: Any) -> Any:
    return tensor


@contextlib.contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)
