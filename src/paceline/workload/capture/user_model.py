"""Opens what a user points at: ``file.py:make_model``, a ``.onnx`` file, a ``config.json``."""

import ast
from collections.abc import Sequence
from pathlib import Path

from paceline.errors import InputError, MissingExtraError
from paceline.workload.capture.inputs import InputShape, parse_inputs
from paceline.workload.graph import Graph


def load_user_model(target: str, inputs: Sequence[str | Sequence[int]] = ()) -> Graph:
    """The layer graph of a model that is not in the zoo.

    ``target`` is ``file.py:name``, where the name is a function that makes a torch module (or a
    module, or its class), with arguments where it needs them; an ONNX file; or a Hugging Face
    ``config.json``. ``inputs`` are shapes with the batch first, as ``32x3x224x224`` or
    ``tokens=8x1024:int64``; a function may also return a module and its example inputs.
    """
    path, name = _split(target)
    shapes = parse_inputs(inputs)
    if not path.is_file():
        raise InputError(f"there is no file '{path}'", _hint_for_missing(path))
    if path.suffix == ".onnx":
        from paceline.workload.capture.onnx_file import load_onnx

        return load_onnx(path, shapes)
    if path.suffix == ".json":
        from paceline.workload.capture.hugging_face import load_config

        return load_config(path)
    if path.suffix == ".py":
        return _load_python(path, name, shapes)
    raise InputError(
        f"'{path}' is not a model that can be read",
        "give file.py:make_model, a .onnx file or a Hugging Face config.json",
    )


def _load_python(path: Path, name: str | None, shapes: list[InputShape]) -> Graph:
    if name is None:
        found = _names_in(path)
        example = f"{path}:{found[0]}" if found else f"{path}:make_model"
        raise InputError(f"'{path}' does not say what makes the model", f"as in {example}")
    try:
        import torch  # noqa: F401
    except ImportError:
        raise MissingExtraError(
            f"'{path}' is a PyTorch model, and PyTorch is not installed",
            "pip install 'paceline[torch]'",
        ) from None
    from paceline.workload.capture.python_file import load_python

    return load_python(path, name, shapes)


def _split(target: str) -> tuple[Path, str | None]:
    head, marker, tail = target.partition(".py:")
    if marker and head and tail:
        return Path(f"{head}.py"), tail
    head, _, tail = target.rpartition(":")
    return (Path(head), tail) if head and tail.isidentifier() else (Path(target), None)


def _names_in(path: Path) -> list[str]:
    """Functions and classes that a file defines, found without running it."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, UnicodeDecodeError, OSError):
        return []
    names = [
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
    ]
    return sorted(names, key=lambda name: not name.startswith(("make", "build", "get", "create")))


def _hint_for_missing(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f"there is no folder '{folder}' either"
    alike = sorted(other.name for other in folder.glob(f"*{path.suffix}"))[:5]
    if alike:
        return f"in '{folder}': {', '.join(alike)}"
    return f"'{folder.resolve()}' has no {path.suffix or 'such'} file; 'paceline models' lists ours"
