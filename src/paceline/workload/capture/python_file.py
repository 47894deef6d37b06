"""A torch module made by a function in a Python file, captured without memory."""

import ast
import importlib.util
import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from paceline.errors import InputError
from paceline.naming import look_up
from paceline.units import format_bytes
from paceline.workload.capture.construction import MemorylessMode, made_under
from paceline.workload.capture.fake import ExampleInputs, plain_module
from paceline.workload.capture.inputs import InputShape
from paceline.workload.capture.maker import Maker, parse_maker
from paceline.workload.capture.problems import NeedsDataError
from paceline.workload.capture.steps import capture_module
from paceline.workload.graph import Graph

REAL_BYTES_ALLOWED = 2**30
"""Real tensors that a model may bring with it (read from NumPy, say) before it is refused."""

REAL_CONSTRUCTOR_NOTE = "its constructor reads values, so it was made in real memory"


def load_python(path: Path, made_by: str, shapes: list[InputShape]) -> Graph:
    """The graph of what ``made_by``, a name or a call, in the file at ``path`` makes.

    The file is run, and its function called, in a mode in which tensors take no memory; where
    what it makes depends on values, once more with memory.
    """
    maker = parse_maker(made_by)
    label = f"{path.name}:{maker.name}"
    graph_name = f"{path.stem}.{maker.name}"
    with _as_if_started(path):
        try:
            model, example = _made(path, maker, MemorylessMode())
        except NeedsDataError:
            model, example = _made(path, maker, None)
            notes = [REAL_CONSTRUCTOR_NOTE]
        else:
            notes = []
            _check_memory(model, label)
        try:
            return capture_module(model, _inputs(shapes, example, label), graph_name, notes)
        except NeedsDataError:
            if notes or example is None or shapes:
                raise
            model, example = _made(path, maker, None)
            return capture_module(model, _inputs(shapes, example, label), graph_name)


def _made(path: Path, maker: Maker, mode: MemorylessMode | None) -> tuple[Any, Any]:
    """The module and, where the function gives them, its example inputs."""
    label = f"{path.name}:{maker.name}"
    module = made_under(mode, lambda: _run_file(path), path.name)
    made = made_under(mode, lambda: maker.value(lambda name: _find(module, name, path)), label)
    if maker.call is None and not isinstance(made, torch.nn.Module):
        made = made_under(mode, lambda: _call(made, label), label)
    model, example = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    if not isinstance(model, torch.nn.Module):
        raise InputError(
            f"{label} gives {_article(type(model).__name__)}, not a torch.nn.Module",
            "name a function that returns one, its class, or the module itself",
        )
    return plain_module(model), example


def _run_file(path: Path) -> Any:
    _, package = _package_of(path)
    name = f"{package}{'.' if package else ''}paceline_user_model_{path.stem}"
    specification = importlib.util.spec_from_file_location(name, path)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module  # dataclasses and pickling look there
    try:
        specification.loader.exec_module(module)
    except SyntaxError as error:
        raise InputError(
            f"{path.name}:{error.lineno}: {error.msg}", "mend the file, then try again"
        ) from error
    except SystemExit as error:
        raise InputError(
            f"{path.name} ends the program when it is imported (exit {error.code})",
            "put what it runs below: if __name__ == '__main__'",
        ) from error
    return module


def _find(module: Any, name: str, path: Path) -> Any:
    public = {key: value for key, value in vars(module).items() if not key.startswith("__")}
    mine = {
        key: value
        for key, value in public.items()
        if getattr(value, "__module__", None) == module.__name__
        or isinstance(value, torch.nn.Module)
    }
    if name in public:
        return public[name]
    offered = ", ".join(mine) or "nothing"
    return look_up(f"function or module in {path.name}", name, mine, f"it defines {offered}")


def _call(make: Any, label: str) -> Any:
    if not callable(make):
        raise InputError(
            f"{label} is {_article(type(make).__name__)}, which makes no model",
            "name a function that returns a torch.nn.Module",
        )
    needed = [
        parameter.name
        for parameter in inspect.signature(make).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    if needed:
        raise InputError(
            f"{label} needs {', '.join(needed)}, but is called with nothing",
            f"say them, as in '{label}({needed[0]}=...)', or name a function without any",
        )
    return make()


def _check_memory(model: Any, label: str) -> None:
    """Refuse a model that brought too many real tensors with it."""
    real = {
        name: tensor
        for name, tensor in (*model.named_parameters(), *model.named_buffers())
        if not isinstance(tensor, FakeTensor) and tensor.device.type != "meta"
    }
    size = sum(tensor.numel() * tensor.element_size() for tensor in real.values())
    if size > REAL_BYTES_ALLOWED:
        largest = max(real, key=lambda name: real[name].numel())
        raise InputError(
            f"{label} allocates {format_bytes(size)} of real memory, most of it in '{largest}'",
            "make its tensors with torch inside the function, and load no weights",
        )


def _inputs(shapes: list[InputShape], example: Any, label: str) -> ExampleInputs:
    if not shapes:
        if example is not None:
            return ExampleInputs(example)
        raise InputError(
            f"nothing says what goes into {label}", "add --input 32x3x224x224, batch first"
        )
    plain: list[torch.Tensor] = []
    named: dict[str, torch.Tensor] = {}
    for given in shapes:
        tensor = torch.empty(given.shape, dtype=getattr(torch, given.dtype), device="meta")
        if given.name is None:
            plain.append(tensor)
        else:
            named[given.name] = tensor
    return ExampleInputs(tuple(plain), named)


@contextmanager
def _as_if_started(path: Path) -> Iterator[None]:
    """Let the file import what lies beside it, in its package, and in the current folder.

    It sees no arguments of the command line: one that parses them gets its own defaults.
    """
    root, _ = _package_of(path)
    before, arguments = list(sys.path), list(sys.argv)
    sys.path[:] = [str(path.resolve().parent), str(root), *before, str(Path.cwd())]
    sys.argv[:] = [str(path)]
    try:
        yield
    finally:
        sys.path[:], sys.argv[:] = before, arguments


def _package_of(path: Path) -> tuple[Path, str]:
    """The folder that the file's package lies in, and the package's name; "" outside of one.

    Folders with an ``__init__.py`` are packages, and so are those that relative imports go up to.
    """
    folder, parts = path.resolve().parent, list[str]()
    levels = _relative_levels(path)
    while folder.name and (len(parts) < levels or (folder / "__init__.py").is_file()):
        parts.insert(0, folder.name)
        folder = folder.parent
    return folder, ".".join(parts)


def _relative_levels(path: Path) -> int:
    """Most dots that an import of the file begins with; 0 where it cannot be read."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return 0
    return max((n.level for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)), default=0)


def _article(noun: str) -> str:
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"
