"""Errors of a user's model as one-line messages with the line of their file."""

import contextlib
import sysconfig
import traceback
from collections.abc import Iterator
from pathlib import Path

import torch
from torch._subclasses import fake_tensor

import paceline
from paceline.errors import InputError, PacelineError

_LIBRARIES = (sysconfig.get_paths()["stdlib"], sysconfig.get_paths()["purelib"])
_OURS = (
    str(Path(torch.__file__).parent),
    str(Path(paceline.__file__).parent),
    sysconfig.get_paths()["stdlib"] + "/",
)
_NEEDING_DATA = (
    fake_tensor.DataDependentOutputException,
    fake_tensor.DynamicOutputShapeException,
)

_WITH_DATA = "return the model and example inputs with data, so that one real step can be run"
LAZY = "has a lazy layer, whose shape is unknown before its first input"
LAZY_HINT = "give the layer its input size, as in nn.Linear instead of nn.LazyLinear"


class NeedsDataError(InputError):
    """The operations that run depend on tensor values, which fake tensors do not have."""


@contextlib.contextmanager
def explained(label: str) -> Iterator[None]:
    """Convert exceptions of the user's code to `InputError`."""
    try:
        yield
    except PacelineError:
        raise
    except Exception as error:
        cause = _root_cause(error)
        message, hint = _explanation(cause)
        kind = NeedsDataError if isinstance(cause, _NEEDING_DATA) else InputError
        raise kind(f"{source_line(error) or label}: {message}", hint) from error


def source_line(error: BaseException) -> str:
    """``file:line`` of the innermost frame in the user's code; empty if there is none.

    The line of a library follows in brackets where the exception was raised there.
    """
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith((*_OURS, "<"))
    ]
    users = [frame for frame in frames if not frame.filename.startswith(_LIBRARIES)]
    if not users:
        return _line(frames[-1]) if frames else ""
    line = _line(users[-1])
    return line if frames[-1] is users[-1] else f"{line} ({_line(frames[-1])})"


def _line(frame: traceback.FrameSummary) -> str:
    return f"{Path(frame.filename).name}:{frame.lineno}"


def _root_cause(error: BaseException) -> BaseException:
    """The first exception of the chain: PyTorch wraps those of fake tensors."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _explanation(error: BaseException) -> tuple[str, str]:
    text = _one_line(error)
    if isinstance(error, ModuleNotFoundError) and error.name:
        return (
            f"{type(error).__name__}: {text}",
            f"install '{error.name.partition('.')[0]}' in the environment of Paceline, or add its "
            "folder to PYTHONPATH",
        )
    if isinstance(error, fake_tensor.DataDependentOutputException):
        return (
            "reads the value of a tensor, so the operations that run depend on the data",
            f"branch on shapes or use torch.where; otherwise {_WITH_DATA}",
        )
    if isinstance(error, fake_tensor.DynamicOutputShapeException):
        return (
            f"{error.func} returns a tensor whose size depends on the data",
            f"use a mask or a fixed size; otherwise {_WITH_DATA}",
        )
    if isinstance(error, fake_tensor.UnsupportedOperatorException):
        return (
            f"{error.func} has no fake implementation",
            "register one with torch.library.register_fake",
        )
    if isinstance(error, MemoryError) or "can't allocate memory" in text:
        return ("allocates real memory", "create tensors with torch inside the function")
    if "UninitializedParameter" in text:
        return LAZY, LAZY_HINT
    if "Cannot swap" in text:
        text = "moves a module to another device, as .cuda() does"
    if "CUDA" in text or "cuda" in text:
        return (text, "create the model on the CPU; capture does not need the target device")
    if ".numpy()" in text or "to a numpy" in text.lower():
        return ("converts a tensor to NumPy, which needs its data", "use torch operations")
    if "scalar types: Long, Int" in text or "expected scalar type Long" in text.lower():
        return (
            f"a floating-point input is used as indices ({text})",
            "declare it as integers: --input 8x1024:int64",
        )
    return (f"{type(error).__name__}: {text}", "run the model with these inputs in plain PyTorch")


def _one_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:200] if lines else "no message"
