"""Load an ONNX file as a layer graph: shapes by inference, costs by operation.

The file holds the forward pass only. The training step is derived: every weight gets a gradient,
and the backward pass of an operation reads its inputs and the gradient of its result.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paceline.errors import InputError, MissingExtraError
from paceline.workload.capture import onnx_operations as operations
from paceline.workload.capture.describe import described
from paceline.workload.capture.inputs import InputShape
from paceline.workload.capture.recording import CapturedSegment, RecordedInput, RecordedStep
from paceline.workload.graph import Graph

LARGEST_SIZE = 2**40
_HINT = "export the model again or check the file with onnx.checker"


def load_onnx(path: Path, shapes: Sequence[InputShape]) -> Graph:
    """Load an ONNX file; ``shapes`` set dimensions that are dynamic in the file."""
    onnx = _onnx()
    try:
        model = onnx.load(str(path), load_external_data=False)
    except Exception as error:  # protobuf and onnx raise errors of their own
        raise InputError(f"{path} is not an ONNX model ({error})", _HINT) from None
    if not model.graph.node:
        raise InputError(f"{path} is not an ONNX model: it has no operations", _HINT)
    sizes = _input_sizes(model, shapes, path)
    batch = next(iter(sizes.values()))[0]
    first = _record(onnx, model, sizes, batch, path)
    doubled = {
        name: (2 * size[0], *size[1:]) if size[0] == batch else size for name, size in sizes.items()
    }
    try:
        second: RecordedStep | None = _record(onnx, model, doubled, 2 * batch, path)
    except InputError:
        second = None  # the batch size is fixed in the file
    return described(path.stem, first, second)


def _record(onnx: Any, model: Any, sizes: dict[str, Any], batch: int, path: Path) -> RecordedStep:
    fixed = onnx.ModelProto()
    fixed.CopyFrom(model)
    del fixed.graph.value_info[:]
    for given in fixed.graph.input:
        if given.name in sizes:
            for dimension, size in zip(
                given.type.tensor_type.shape.dim, sizes[given.name], strict=True
            ):
                dimension.dim_value = size
    for output in fixed.graph.output:
        output.type.tensor_type.ClearField("shape")
    inferred, doubt = _inferred(onnx, fixed, path)
    try:
        return OnnxRecorder(onnx, inferred.graph, batch, path.name).recording()
    except InputError as error:
        raise InputError(error.message + doubt, error.hint) from None
    except (LookupError, ValueError, TypeError, ArithmeticError) as error:
        # too few inputs, or shapes or types that the operation does not have
        raise InputError(f"{path.name} is damaged: {error!r}{doubt}", _HINT) from None


def _inferred(onnx: Any, model: Any, path: Path) -> tuple[Any, str]:
    """The model with shapes, and the error if only some could be inferred."""
    infer = onnx.shape_inference.infer_shapes
    try:
        return infer(model, data_prop=True, strict_mode=True), ""
    except Exception as error:  # operations of other domains, or shapes that do not match
        reason = str(error).strip().splitlines()[0]
    try:
        return infer(model, data_prop=True), f" ({reason})"
    except Exception:
        raise InputError(f"{path.name}: shape inference failed: {reason}", _HINT) from None


def _input_sizes(
    model: Any, shapes: Sequence[InputShape], path: Path
) -> dict[str, tuple[int, ...]]:
    constants = {tensor.name for tensor in model.graph.initializer}
    inputs = [given for given in model.graph.input if given.name not in constants]
    if not inputs:
        raise InputError(f"{path} has no inputs", _HINT)
    names = [given.name for given in inputs]
    chosen = _chosen(shapes, names, path)
    sizes = {}
    for given in inputs:
        if given.name in chosen:
            wanted = len(given.type.tensor_type.shape.dim)
            if wanted and wanted != len(chosen[given.name]):
                raise InputError(
                    f"input '{given.name}' of {path.name} has {wanted} dimensions, "
                    f"not {len(chosen[given.name])}",
                    f"give {wanted} sizes, batch first",
                )
            sizes[given.name] = chosen[given.name]
        else:
            sizes[given.name] = _sizes_in_file(given, path)
    return sizes


def _chosen(
    shapes: Sequence[InputShape], names: list[str], path: Path
) -> dict[str, tuple[int, ...]]:
    hint = f"inputs: {', '.join(names)}"
    if len(shapes) > len(names):
        raise InputError(
            f"too many input shapes for {path.name}: {len(shapes)} (inputs: {len(names)})", hint
        )
    chosen = {}
    for given, name in zip(shapes, names, strict=False):
        key = given.name or name
        if key not in names:
            raise InputError(f"{path.name} has no input '{key}'", hint)
        chosen[key] = given.shape
    return chosen


def _sizes_in_file(given: Any, path: Path) -> tuple[int, ...]:
    sizes = []
    for position, dimension in enumerate(given.type.tensor_type.shape.dim):
        if dimension.dim_value > 0:
            sizes.append(int(dimension.dim_value))
        elif position == 0:
            sizes.append(1)  # dynamic batch: costs are functions of it
        else:
            label = dimension.dim_param or f"number {position}"
            raise InputError(
                f"dimension '{label}' of input '{given.name}' of {path.name} is dynamic",
                f"give the complete shape, batch first: --input {given.name}=8x128",
            )
    if max(sizes, default=0) > LARGEST_SIZE:
        raise InputError(
            f"input '{given.name}' of {path.name} has a dimension of {max(sizes)} "
            f"(maximum {LARGEST_SIZE})",
            _HINT,
        )
    if not sizes or not math.prod(sizes):
        raise InputError(
            f"input '{given.name}' of {path.name} has no shape",
            f"add --input {given.name}=8x3x224x224",
        )
    return tuple(sizes)


def _onnx() -> Any:
    try:
        import onnx
        import onnx.shape_inference
    except ImportError:
        raise MissingExtraError(
            "ONNX files need the package onnx", "pip install 'paceline[onnx]'"
        ) from None
    return onnx


@dataclass(frozen=True, slots=True)
class _Tensor:
    """A named value: its shape and the width of its elements."""

    shape: tuple[int, ...]
    item_bytes: int
    is_float: bool

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


class OnnxRecorder:
    """Record the nodes of a graph with inferred shapes, in order."""

    def __init__(self, onnx: Any, graph: Any, batch: int, file: str) -> None:
        self._onnx, self._graph, self._batch, self._file = onnx, graph, batch, file
        self._constants = {tensor.name: tensor for tensor in graph.initializer}
        self._tensors = dict(self._typed_values())
        self._inputs = [v.name for v in graph.input if v.name not in self._constants]
        self._source: dict[str, int | str] = {name: name for name in self._inputs}
        self._derived: dict[str, tuple[str, ...]] = {name: (name,) for name in self._constants}
        self._trained: set[str] = set()
        self._storage: dict[str, str] = {}
        self._kept: set[str] = set()
        self._segments: list[CapturedSegment] = []
        self._index_limits: dict[str, int] = {}

    def recording(self) -> RecordedStep:
        for number, node in enumerate(self._graph.node):
            self._node(number, node)
        inputs = {
            name: RecordedInput(self._tensors[name].shape, self._tensors[name].is_float)
            for name in self._inputs
        }
        root = self._graph.name or "graph"
        return RecordedStep(root, self._batch, self._segments, inputs, {}, self._index_limits)

    def _node(self, number: int, node: Any) -> None:
        reads = [name for name in node.input if name]
        if node.op_type == "Constant" or (reads and all(name in self._derived for name in reads)):
            owners = dict.fromkeys(owner for name in reads for owner in self._derived[name])
            for name in node.output:
                self._derived[name] = tuple(owners)
            return
        if node.op_type in operations.VIEWS:
            self._alias(node, reads)
            return
        if not any(self._is_float(name) for name in (*reads, *node.output)):
            return  # arithmetic on shapes
        name = node.name.strip("/").replace("/", ".") or f"{node.op_type}_{number}"
        self._segments.append(CapturedSegment(name))
        self._fill(len(self._segments) - 1, node, reads)

    def _alias(self, node: Any, reads: list[str]) -> None:
        for name in node.output:
            if reads:
                self._storage[name] = self._storage.get(reads[0], reads[0])
                if reads[0] in self._source:
                    self._source[name] = self._source[reads[0]]
                if reads[0] in self._trained:
                    self._trained.add(name)

    def _fill(self, index: int, node: Any, reads: list[str]) -> None:
        segment = self._segments[index]
        for name in reads:
            source = self._source.get(name)
            if source is not None and source != index:
                segment.reads[source] = None
        segment.parameters = self._parameters(node)
        needs_input_gradient = any(name in self._trained for name in reads)
        trains = needs_input_gradient or bool(segment.parameters)
        inputs = [
            self._tensor(name, node)
            for name in reads
            if name in self._tensors or name not in self._derived
        ]
        outputs = [self._tensor(name, node) for name in node.output if name in self._tensors]
        if not outputs and operations.is_understood(node.op_type):
            raise self._unknown_shape(node.output[0], node)
        self._count_products(segment, node, inputs, outputs, trains, needs_input_gradient)
        self._count_traffic(segment, node, inputs, outputs, trains)
        if trains:
            self._keep(segment, node, outputs)
        segment.output_shape = outputs[0].shape if outputs else ()
        segment.kind = operations.kind_of(node.op_type, bool(segment.parameters))
        if node.op_type == "Gather" and reads[0] in self._derived and reads[1] in self._inputs:
            self._index_limits[reads[1]] = inputs[0].shape[0]
        for name in node.output:
            self._source[name] = index
            if trains:
                self._trained.add(name)

    def _parameters(self, node: Any) -> dict[str, tuple[int, ...]]:
        """Floating-point constants of at least one dimension that a node uses as weights."""
        excluded = operations.NOT_TRAINED.get(node.op_type, ())
        found: dict[str, tuple[int, ...]] = {}
        for position, name in enumerate(node.input):
            if position in excluded:
                continue
            for owner in self._derived.get(name, ()):
                tensor = self._tensors[owner]
                if owner in self._constants and tensor.is_float and tensor.shape:
                    found[owner] = tensor.shape
        return found

    def _count_products(
        self,
        segment: CapturedSegment,
        node: Any,
        inputs: list[_Tensor],
        outputs: list[_Tensor],
        trains: bool,
        needs_input_gradient: bool,
    ) -> None:
        attributes = {
            attribute.name: self._onnx.helper.get_attribute_value(attribute)
            for attribute in node.attribute
        }
        try:
            found = operations.products_of(
                node.op_type, [t.shape for t in inputs], [t.shape for t in outputs], attributes
            )
        except InputError as error:
            where = f"{self._file}: {node.op_type} '{node.name}': {error.message}"
            raise InputError(where, error.hint) from None
        if found is None:
            return
        segment.forward = found.products
        segment.operation_flops[node.op_type] = sum(p.flops for p in found.products)
        if trains:
            has_weight = bool(segment.parameters)
            of_inputs, of_weights = found.gradients(has_weight)
            segment.weight_gradient = of_weights
            segment.input_gradient = of_inputs if needs_input_gradient else []

    def _count_traffic(
        self,
        segment: CapturedSegment,
        node: Any,
        inputs: list[_Tensor],
        outputs: list[_Tensor],
        trains: bool,
    ) -> None:
        operation = node.op_type
        most = outputs[0].elements if operation in operations.GATHERS else None
        total = 0
        for tensors, is_write in ((inputs, False), (outputs, True)):
            for tensor in tensors:
                elements = tensor.elements if most is None else min(tensor.elements, most)
                segment.forward_moved.add(elements, tensor.item_bytes, tensor.is_float, is_write)
                total += elements * tensor.item_bytes
                if trains and tensor.is_float:
                    backward = segment.backward_moved
                    backward.add(elements, tensor.item_bytes, True, False)
                    if not is_write:  # its gradient is as large as the tensor itself
                        backward.add(tensor.elements, tensor.item_bytes, True, True)
        segment.operation_bytes[operation] = total
        if not operations.is_understood(operation):
            segment.unknown_bytes[f"{node.domain or 'onnx'}::{operation}"] = total

    def _keep(self, segment: CapturedSegment, node: Any, outputs: list[_Tensor]) -> None:
        names: list[str] = []
        if node.op_type in operations.KEEPS_INPUTS:
            names += [name for name in node.input if name and name not in self._derived]
        if node.op_type in operations.KEEPS_OUTPUT:
            names.append(node.output[0])
        if node.op_type in operations.KEEPS_POSITIONS:
            segment.kept_other_bytes += 8 * outputs[0].elements
        for name in names:
            storage = self._storage.get(name, name)
            if storage not in self._kept:
                self._kept.add(storage)
                tensor = self._tensor(storage, node)
                if tensor.is_float:
                    segment.kept_elements += tensor.elements
                else:
                    segment.kept_other_bytes += tensor.elements * tensor.item_bytes

    def _tensor(self, name: str, node: Any) -> _Tensor:
        tensor = self._tensors.get(name)
        if tensor is None:
            raise self._unknown_shape(name, node)
        return tensor

    def _unknown_shape(self, name: str, node: Any) -> InputError:
        return InputError(
            f"{self._file}: the shape of '{name}' ({node.op_type} '{node.name}') is unknown",
            "give the shapes of all inputs with --input or export without data-dependent sizes",
        )

    def _is_float(self, name: str) -> bool:
        return name in self._tensors and self._tensors[name].is_float

    def _typed_values(self) -> Iterable[tuple[str, _Tensor]]:
        for tensor in self._graph.initializer:
            yield tensor.name, self._described(tensor.data_type, tuple(tensor.dims))
        for value in (*self._graph.input, *self._graph.value_info, *self._graph.output):
            kind = value.type.tensor_type
            sizes = tuple(int(dimension.dim_value) for dimension in kind.shape.dim)
            if kind.HasField("shape") and all(size > 0 for size in sizes):
                yield value.name, self._described(kind.elem_type, sizes)

    def _described(self, element_type: int, shape: tuple[int, ...]) -> _Tensor:
        numbers = self._onnx.helper.tensor_dtype_to_np_dtype(element_type)
        types = self._onnx.TensorProto
        floats = (types.FLOAT, types.FLOAT16, types.DOUBLE, types.BFLOAT16)
        return _Tensor(shape, numbers.itemsize, element_type in floats)
