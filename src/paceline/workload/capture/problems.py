"""Turns what goes wrong in a user's model into one line that names the line of their file."""

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

_WITH_DATA = "let the function return the model and example inputs with data: one step is run"
LAZY = "has a lazy layer, whose shape only its first input would tell"
LAZY_HINT = "give the layer its input size, as in nn.Linear instead of nn.LazyLinear"


class NeedsDataError(InputError):
    """What runs depends on values, which a model without data does not have."""


@contextlib.contextmanager
def explained(label: str) -> Iterator[None]:
    """Raise an `InputError` in place of whatever the user's code raises inside."""
    try:
        yield
    except PacelineError:
        raise
    except Exception as error:
        cause = _root_cause(error)
        message, hint = _explanation(cause)
        kind = NeedsDataError if isinstance(cause, _NEEDING_DATA) else InputError
        raise kind(f"{place_of(error) or label}: {message}", hint) from error


def place_of(error: BaseException) -> str:
    """``file:line`` of the innermost frame that is the user's own; empty if there is none.

    Where a library that the user's line called went wrong, its line follows in brackets.
    """
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith((*_OURS, "<"))
    ]
    users = [frame for frame in frames if not frame.filename.startswith(_LIBRARIES)]
    if not users:
        return _line(frames[-1]) if frames else ""
    place = _line(users[-1])
    return place if frames[-1] is users[-1] else f"{place} ({_line(frames[-1])})"


def _line(frame: traceback.FrameSummary) -> str:
    return f"{Path(frame.filename).name}:{frame.lineno}"


def _root_cause(error: BaseException) -> BaseException:
    """What an error was raised from in the first place: PyTorch wraps some of them."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _explanation(error: BaseException) -> tuple[str, str]:
    text = _one_line(error)
    if isinstance(error, ModuleNotFoundError) and error.name:
        return (
            f"{type(error).__name__}: {text}",
            f"install '{error.name.partition('.')[0]}' where Paceline is installed, or put the "
            "folder that has it on PYTHONPATH",
        )
    if isinstance(error, fake_tensor.DataDependentOutputException):
        return (
            "reads the value of a tensor, so what runs depends on the data",
            f"decide by shapes, or use torch.where; else {_WITH_DATA}",
        )
    if isinstance(error, fake_tensor.DynamicOutputShapeException):
        return (
            f"{error.func} gives a tensor whose size depends on the data",
            f"use a mask or a fixed size; else {_WITH_DATA}",
        )
    if isinstance(error, fake_tensor.UnsupportedOperatorException):
        return (
            f"{error.func} cannot be run without data",
            "register a fake implementation with torch.library.register_fake",
        )
    if isinstance(error, MemoryError) or "can't allocate memory" in text:
        return ("allocates real memory", "make tensors with torch inside the function")
    if "UninitializedParameter" in text:
        return LAZY, LAZY_HINT
    if "Cannot swap" in text:
        text = "moves a module to another device, as .cuda() does"
    if "CUDA" in text or "cuda" in text:
        return (text, "make it on the CPU: where it will run does not matter here")
    if ".numpy()" in text or "to a numpy" in text.lower():
        return ("converts a tensor to NumPy, which needs its data", "stay within torch")
    if "scalar types: Long, Int" in text or "expected scalar type Long" in text.lower():
        return (
            f"an input of floating-point numbers is used as indices ({text})",
            "say that it holds integers: --input 8x1024:int64",
        )
    return (f"{type(error).__name__}: {text}", "does it run with these inputs in plain PyTorch?")


def _one_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:200] if lines else "no message"
