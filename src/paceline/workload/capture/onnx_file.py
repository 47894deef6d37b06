"""Load an ONNX file as a layer graph: shapes by inference, costs by operation.

The file holds the forward pass only. The training step is derived: every weight gets a gradient,
and the backward pass of an operation reads its inputs and the gradient of its result.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from paceline.errors import InputError, MissingExtraError
from paceline.workload.capture.describe import described
from paceline.workload.capture.inputs import InputShape
from paceline.workload.capture.onnx_recording import OnnxRecorder
from paceline.workload.capture.recording import RecordedStep
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
