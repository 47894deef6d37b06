"""Record the operations of each module while a model runs on fake tensors.

Forward operations belong to the innermost running module. Backward operations belong to the
module whose forward operation created the running autograd node: autograd numbers nodes in the
order of creation, so the sequence number identifies the module.
"""

import contextlib
import functools
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from paceline.workload.capture.gemms import CapturedGemm, products_of
from paceline.workload.capture.recording import CapturedSegment, RecordedInput, RecordedStep
from paceline.workload.capture.traffic import hidden_workspace, is_understood_by_bytes, movement

_SILENT_NAMESPACES = ("prim", "profiler")


class Recorder(TorchDispatchMode):  # type: ignore[misc]
    """Record one forward and backward pass of ``model``: enter, run, read `recording`."""

    supports_higher_order_operators = True

    def __init__(self, model: Any, inputs: Mapping[str, Any], batch: int) -> None:
        super().__init__()
        self._batch = batch
        self._segments: list[CapturedSegment] = []
        self._names = {id(module): name for name, module in model.named_modules()}
        self._root = type(model).__name__
        self._stack: list[tuple[str, int]] = [("", 0)]
        self._calls = 0
        self._current: tuple[tuple[str, int], int] | None = None
        self._owner_of_node: dict[int, tuple[int, bool]] = {}
        self._last_backward = (0, False)
        self._producer: dict[int, int | str] = {}
        self._alive: dict[int, Any] = {}
        self._weights: set[int] = set()
        self._constants: set[int] = set()
        self._kept: set[int] = set()
        self._parameter_names: dict[int, tuple[str, tuple[int, ...]]] = {}
        self._frozen_not_yet_used: dict[int, tuple[str, tuple[int, ...]]] = {}
        self._inputs = dict(inputs)
        self._index_limits: dict[str, int] = {}
        self._prepare(model)

    def _prepare(self, model: Any) -> None:
        for name, parameter in model.named_parameters():
            storage = self._storage(parameter)
            self._weights.add(storage)
            self._constants.add(storage)
            names = self._parameter_names if parameter.requires_grad else self._frozen_not_yet_used
            names.setdefault(storage, (name, tuple(parameter.shape)))
        for buffer in model.buffers():
            self._constants.add(self._storage(buffer))
        for name, tensor in self._inputs.items():
            self._producer[self._storage(tensor)] = name

    @contextlib.contextmanager
    def watching(self) -> Iterator["Recorder"]:
        module = torch.nn.modules.module
        handles = [
            module.register_module_forward_pre_hook(self._enter_module),
            module.register_module_forward_hook(self._leave_module, always_call=True),
        ]
        try:
            with torch.autograd.graph.saved_tensors_hooks(self._keep, lambda tensor: tensor), self:
                yield self
        finally:
            for handle in handles:
                handle.remove()

    def recording(self) -> RecordedStep:
        unused = dict(self._parameter_names.values())
        for segment in self._segments:
            for name in segment.parameters:
                unused.pop(name, None)
        inputs = {
            name: RecordedInput(tuple(tensor.shape), tensor.dtype.is_floating_point)
            for name, tensor in self._inputs.items()
        }
        return RecordedStep(
            self._root, self._batch, self._segments, inputs, unused, self._index_limits
        )

    def _enter_module(self, module: Any, _: Any) -> None:
        name = self._names.get(id(module))
        if name is not None:
            self._calls += 1
            self._stack.append((name, self._calls))

    def _leave_module(self, module: Any, _: Any, __: Any) -> None:
        if id(module) in self._names:
            self._stack.pop()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if getattr(func, "namespace", "higher_order") not in _SILENT_NAMESPACES:
            call = _Call(func, args, kwargs, result)
            if call.read or call.written:
                self._record(call)
        return result

    def _record(self, call: "_Call") -> None:
        call.uses_weight = any(self._storage(tensor) in self._weights for tensor in call.read)
        if call.how == "nothing":
            self._note_view(call)
            return
        if call.node is None:
            index = self._forward_segment()
            self._note_forward(index, call)
            trains_weight = False
        else:
            index, trains_weight = self._backward_segment(call.node)
        self._count_products(self._segments[index], call, trains_weight)
        _count_traffic(self._segments[index], call)

    def _note_view(self, call: "_Call") -> None:
        """Assign a view to the producer of its storage; its gradient may still move data."""
        producer = self._producer.get(self._storage(call.read[0])) if call.read else None
        if call.node is None and isinstance(producer, int):
            self._owner_of_node.setdefault(_next_node() - 1, (producer, False))

    def _forward_segment(self) -> int:
        call = self._stack[-1]
        if self._current is None or self._current[0] != call:
            self._segments.append(CapturedSegment(call[0]))
            self._current = (call, len(self._segments) - 1)
        return self._current[1]

    def _backward_segment(self, node: Any) -> tuple[int, bool]:
        if not self._segments:  # the forward pass only created views
            self._forward_segment()
        if len(self._stack) > 1:  # torch.utils.checkpoint runs the module again
            for index, segment in enumerate(self._segments):
                if segment.module == self._stack[-1][0]:
                    self._owner_of_node.setdefault(_next_node() - 1, (index, True))
                    return index, False
        owner = self._owner_of_node.get(node._sequence_nr(), self._last_backward)
        self._last_backward = owner
        return owner

    def _note_forward(self, index: int, call: "_Call") -> None:
        segment = self._segments[index]
        # The autograd node of this operation is the last one numbered.
        self._owner_of_node.setdefault(_next_node() - 1, (index, call.uses_weight))
        if torch.is_grad_enabled():
            segment.kept_elements += hidden_workspace(call.name, call.result)
        storages = [self._storage(tensor) for tensor in call.read]
        for storage in storages:
            producer = self._producer.get(storage)
            if producer is not None and producer != index:
                segment.reads[producer] = None
            if storage in self._parameter_names:
                name, shape = self._parameter_names[storage]
                segment.parameters[name] = shape
            if storage in self._frozen_not_yet_used:
                name, shape = self._frozen_not_yet_used.pop(storage)
                segment.frozen[name] = shape
        if call.name == "aten::embedding":
            table, indices = call.args[:2]
            source = self._producer.get(self._storage(indices))
            if isinstance(source, str):
                self._index_limits.setdefault(source, int(table.shape[0]))
        # Operations on weights alone (a cast, a transpose) give weights, independent of the batch.
        derived = bool(storages) and all(storage in self._weights for storage in storages)
        for tensor in call.written:
            storage = self._storage(tensor)
            if derived:
                self._weights.add(storage)
            elif storage not in self._weights:
                self._producer[storage] = index
        if call.written and call.written[0].dtype.is_floating_point:
            segment.output_shape = tuple(call.written[0].shape)

    def _count_products(self, segment: CapturedSegment, call: "_Call", trains_weight: bool) -> None:
        products = products_of(call.name, call.args, call.result)
        if products is None:
            products = _registered_products(call)
        segment.operation_flops[call.name] += sum(product.flops for product in products)
        for product in products:
            # In the backward of a layer with a weight, the GEMM that reads the weight is the input
            # gradient; the other one is the gradient of the weight.
            if call.node is None:
                segment.forward.append(product)
            elif product.role == "weight_gradient" or (
                product.role == "plain" and trains_weight and not call.uses_weight
            ):
                segment.weight_gradient.append(product)
            else:
                segment.input_gradient.append(product)

    def _keep(self, tensor: Any) -> Any:
        storage = self._storage(tensor)
        # Parameters and buffers are in memory anyway: only activations count as saved.
        if storage not in self._constants and storage not in self._kept:
            self._kept.add(storage)
            segment = self._segments[self._forward_segment()]
            size = tensor.untyped_storage().nbytes()
            if tensor.dtype.is_floating_point:
                segment.kept_elements += size // tensor.element_size()
            else:
                segment.kept_other_bytes += size
        return tensor

    def _storage(self, tensor: Any) -> int:
        """Identity of a tensor's storage, which is kept alive so that no other reuses it."""
        try:
            storage = tensor.untyped_storage()
        except NotImplementedError:  # sparse tensors have none
            self._alive[id(tensor)] = tensor
            return id(tensor)
        number: int = storage._cdata
        self._alive.setdefault(number, storage)
        return number


class _Call:
    """One operation, its tensors, and in the backward pass the autograd node that ran it."""

    def __init__(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        self.func, self.args, self.kwargs, self.result = func, args, kwargs, result
        schema = getattr(func, "_schema", None)
        self.name = str(schema.name) if schema is not None else f"higher_order::{func.name()}"
        self.how = movement(self.name, is_view=bool(getattr(func, "is_view", False)))
        self.read, self.written = _tensors((args, kwargs)), _tensors(result)
        self.node = torch._C._current_autograd_node()
        self.uses_weight = False


def _count_traffic(segment: CapturedSegment, call: _Call) -> None:
    moved = segment.forward_moved if call.node is None else segment.backward_moved
    # A lookup reads as many rows as it writes, not the whole table.
    most = sum(tensor.numel() for tensor in call.written) if call.how == "gather" else None
    total = 0
    for tensors, is_write in ((call.read, False), (call.written, True)):
        for tensor in tensors:
            elements = _stored_elements(tensor)
            if call.how == "read_twice" and not is_write:
                elements *= 2
            if most is not None:
                elements = min(elements, most)
            moved.add(elements, tensor.element_size(), tensor.dtype.is_floating_point, is_write)
            total += elements * tensor.element_size()
    segment.operation_bytes[call.name] += total
    if not (
        segment.operation_flops[call.name]
        or is_understood_by_bytes(call.name, _is_pointwise(call.func))
    ):
        segment.unknown_bytes[call.name] += total


def _next_node() -> int:
    number: int = torch._C._autograd._get_sequence_nr()
    return number


@functools.cache
def _is_pointwise(func: Any) -> bool:
    """Whether PyTorch tags the operation, or the one whose gradient it is, as pointwise."""
    name = str(func).split(".")[1] if "." in str(func) else ""
    packets = [
        getattr(torch.ops.aten, form, None)
        for form in {name, name.removesuffix("_backward"), name.removesuffix("_")}
    ]
    overloads = [getattr(p, o) for p in packets if p is not None for o in p.overloads()]
    return any(torch.Tag.pointwise in overload.tags for overload in overloads)


def _tensors(value: Any) -> list[Any]:
    """Tensors in arguments or results, without duplicates."""
    found: dict[int, Any] = {}
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, torch.Tensor):
            found[id(item)] = item
        elif isinstance(item, list | tuple):
            waiting.extend(reversed(item))
        elif isinstance(item, dict):
            waiting.extend(item.values())
    return list(found.values())


def _registered_products(call: _Call) -> list[CapturedGemm]:
    """An operation that only PyTorch's FLOP counter knows, as one GEMM of as many FLOP."""
    formula = flop_registry.get(getattr(call.func, "_overloadpacket", call.func))
    if formula is None:
        return []
    flops = int(formula(*call.args, **call.kwargs, out_val=call.result))
    return [CapturedGemm(flops // 2, 1, 1)] if flops else []


def _stored_elements(tensor: Any) -> int:
    """Elements in memory: fewer than the shape has for an expanded tensor."""
    elements: int = tensor.numel()
    try:
        stored: int = tensor.untyped_storage().nbytes() // tensor.element_size()
    except NotImplementedError:
        return elements
    return min(elements, stored)
