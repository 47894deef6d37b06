"""Message size of a communication event of a PyTorch trace."""

from math import prod
from typing import Any

_BYTES = {
    "float": 4,
    "float32": 4,
    "int": 4,
    "int32": 4,
    "double": 8,
    "float64": 8,
    "long": 8,
    "int64": 8,
    "long int": 8,
    "half": 2,
    "float16": 2,
    "bfloat16": 2,
    "c10::half": 2,
    "c10::bfloat16": 2,
    "byte": 1,
    "unsigned char": 1,
    "int8": 1,
    "uint8": 1,
    "char": 1,
    "bool": 1,
}
LARGEST_MESSAGE = 1e15


def message_bytes(arguments: dict[str, Any]) -> float:
    """Bytes of the message; 0.0 if unknown.

    NCCL events have the number of elements and their type; others have the shapes of their
    inputs when the profiler ran with ``record_shapes=True``.
    """
    elements = arguments.get("In msg nelems")
    width = _BYTES.get(str(arguments.get("dtype", "")).lower())
    if isinstance(elements, int) and not isinstance(elements, bool) and width:
        return _bounded(float(elements) * width if elements < 1e15 else 0.0)
    shapes, types = arguments.get("Input Dims"), arguments.get("Input type")
    if isinstance(shapes, list) and isinstance(types, list):
        return _bounded(_shapes_bytes(shapes, types))
    return 0.0


def _shapes_bytes(shapes: list[Any], types: list[Any]) -> float:
    total = 0.0
    for shape, kind in zip(shapes[:1000], types, strict=False):
        if isinstance(shape, list) and shape and isinstance(kind, list):
            total += _shapes_bytes(shape, kind)
        elif isinstance(shape, list) and shape and all(_is_size(size) for size in shape):
            total += prod(shape[:10]) * _BYTES.get(str(kind).lower(), 0)
    return total


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**12


def _bounded(size: float) -> float:
    return size if 0 <= size < LARGEST_MESSAGE else 0.0
