"""Capture a torch module that a function in a Python file returns."""

import ast
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from paceline.errors import InputError
from paceline.naming import look_up
from paceline.units import format_bytes
from paceline.workload.capture.construction import MemorylessMode, made_under
from paceline.workload.capture.error_messages import NeedsDataError
from paceline.workload.capture.fake import ExampleInputs, plain_module
from paceline.workload.capture.inputs import InputShape
from paceline.workload.capture.steps import capture_module
from paceline.workload.graph import Graph

REAL_BYTES_ALLOWED = 2**30
"""Limit of real tensors in a model, for example those created from NumPy arrays."""

REAL_CONSTRUCTOR_NOTE = "the constructor reads tensor values, so it was run in real memory"


@dataclass(frozen=True)
class FactoryCall:
    """A name in the user's file, or a call of it with arguments."""

    name: str
    call: ast.Call | None = None

    def value(self, find: Callable[[str], Any]) -> Any:
        """The result of the call or the value of the name; ``find`` looks up names."""
        return find(self.name) if self.call is None else _value(self.call, find)


def load_python(path: Path, factory: str, shapes: list[InputShape]) -> Graph:
    """Capture the model that ``factory``, a name or a call, returns in the file at ``path``.

    The file and the function run on fake tensors, and once more on real ones if they read
    tensor values.
    """
    maker = parse_factory_call(factory)
    label = f"{path.name}:{maker.name}"
    graph_name = f"{path.stem}.{maker.name}"
    with _script_environment(path):
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


def _made(path: Path, maker: FactoryCall, mode: MemorylessMode | None) -> tuple[Any, Any]:
    """The module and, if the function returns them, its example inputs."""
    label = f"{path.name}:{maker.name}"
    module = made_under(mode, lambda: _run_file(path), path.name)
    made = made_under(mode, lambda: maker.value(lambda name: _find(module, name, path)), label)
    if maker.call is None and not isinstance(made, torch.nn.Module):
        made = made_under(mode, lambda: _call(made, label), label)
    model, example = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    if not isinstance(model, torch.nn.Module):
        raise InputError(
            f"{label} returns {_article(type(model).__name__)}, not a torch.nn.Module",
            "name a function that returns a module, a module class or a module",
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
            f"{path.name}:{error.lineno}: {error.msg}", "fix the error, then rerun"
        ) from error
    except SystemExit as error:
        raise InputError(
            f"{path.name} exits when it is imported (exit code {error.code})",
            "move the code that runs under: if __name__ == '__main__'",
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
    defined = ", ".join(mine) or "no functions and no modules"
    return look_up(f"function or module in {path.name}", name, mine, f"it defines {defined}")


def _call(make: Any, label: str) -> Any:
    if not callable(make):
        raise InputError(
            f"{label} is {_article(type(make).__name__)}, not a function or a module",
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
            f"{label} has required arguments: {', '.join(needed)}",
            f"give them, such as '{label}({needed[0]}=...)', or name a function without any",
        )
    return make()


def _check_memory(model: Any, label: str) -> None:
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
            "create its tensors with torch inside the function, and load no weights",
        )


def _inputs(shapes: list[InputShape], example: Any, label: str) -> ExampleInputs:
    if not shapes:
        if example is not None:
            return ExampleInputs(example)
        raise InputError(f"{label} has no example inputs", "add --input 32x3x224x224, batch first")
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
def _script_environment(path: Path) -> Iterator[None]:
    """Import paths as for a script: the file's folder, its package, and the current folder.

    ``sys.argv`` is empty, so that a file that parses arguments gets its defaults.
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
    """The parent folder of the file's top-level package, and the package's name ("" if none).

    Folders with an ``__init__.py`` are packages, and so are those that relative imports reach.
    """
    folder, parts = path.resolve().parent, list[str]()
    levels = _relative_levels(path)
    while folder.name and (len(parts) < levels or (folder / "__init__.py").is_file()):
        parts.insert(0, folder.name)
        folder = folder.parent
    return folder, ".".join(parts)


def _relative_levels(path: Path) -> int:
    """The most leading dots of the file's imports; 0 if it cannot be parsed."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return 0
    return max((n.level for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)), default=0)


def _article(noun: str) -> str:
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


_EXAMPLE = "such as 'model.py:UNet(3, classes=2)' or 'model.py:GPT(GPTConfig(n_layer=2))', quoted"
_HINT = f"write a name or a call, {_EXAMPLE}"


def parse_factory_call(text: str) -> FactoryCall:
    """Parse a name or a call; raise `InputError` for any other expression."""
    try:
        body = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InputError(f"'{text}' is neither a name nor a call", _HINT) from None
    if isinstance(body, ast.Name):
        return FactoryCall(body.id)
    if isinstance(body, ast.Call) and isinstance(body.func, ast.Name):
        return FactoryCall(body.func.id, body)
    raise InputError(f"'{text}' is neither a name nor a call", _HINT)


def _value(node: ast.expr, find: Callable[[str], Any]) -> Any:
    match node:
        case ast.Name(id=name):
            return find(name)
        case ast.Attribute(value=owner, attr=attribute):
            return getattr(_value(owner, find), attribute)
        case ast.Call(func=called, args=arguments, keywords=keywords):
            named = {
                keyword.arg: _value(keyword.value, find) for keyword in keywords if keyword.arg
            }
            return _value(called, find)(
                *(_value(argument, find) for argument in arguments), **named
            )
        case ast.List(elts=parts):
            return [_value(part, find) for part in parts]
        case ast.Tuple(elts=parts):
            return tuple(_value(part, find) for part in parts)
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise InputError(
            f"'{ast.unparse(node)}' is not a literal, a name or a call",
            f"use numbers, strings and calls, {_EXAMPLE}",
        ) from None
