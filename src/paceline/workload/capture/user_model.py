"""Load a user's model: ``file.py:make_model``, a ``.onnx`` file or a ``config.json``."""

import ast
from collections.abc import Sequence
from pathlib import Path

from paceline.errors import InputError, MissingExtraError
from paceline.user_files import check_file
from paceline.workload.capture.inputs import InputShape, parse_inputs
from paceline.workload.graph import Graph


def load_user_model(
    target: str, inputs: Sequence[str | Sequence[int]] = (), seq: int | None = None
) -> Graph:
    """Load the layer graph of a model that is not in the zoo.

    ``target`` is ``file.py:name``, an ONNX file or a Hugging Face ``config.json``. The name is a
    function that returns a torch module, a module or its class, with arguments if it needs any.
    ``inputs`` are shapes with the batch first, such as ``32x3x224x224`` or
    ``tokens=8x1024:int64``; a function may also return a module and its example inputs. ``seq``
    is the number of tokens per sample.
    """
    path, name = _split(target)
    shapes = parse_inputs(inputs)
    if not path.exists():
        raise InputError(f"file not found: '{path}'", _hint_for_missing(path))
    check_file(path)
    if path.suffix == ".onnx":
        from paceline.workload.capture.onnx_file import load_onnx

        return load_onnx(path, shapes)
    if path.suffix == ".json":
        from paceline.workload.capture.hugging_face import load_config

        return load_config(path, seq)
    if path.suffix == ".py":
        return _load_python(path, name, shapes)
    raise InputError(
        f"unsupported model file '{path}'",
        "give file.py:make_model, a .onnx file or a Hugging Face config.json",
    )


def _load_python(path: Path, name: str | None, shapes: list[InputShape]) -> Graph:
    if name is None:
        found = _names_in(path)
        example = f"{path}:{found[0]}" if found else f"{path}:make_model"
        raise InputError(
            f"'{path}' needs the name of the function that returns the model", f"use {example}"
        )
    try:
        import torch  # noqa: F401
    except ImportError:
        raise MissingExtraError(
            f"'{path}' is a PyTorch model, but PyTorch is not installed",
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
    """Functions and classes of a file, from its syntax tree: the file is not executed."""
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
        return f"folder '{folder}' does not exist either"
    similar = sorted(other.name for other in folder.glob(f"*{path.suffix}"))[:5]
    if similar:
        return f"files in '{folder}': {', '.join(similar)}"
    missing = f"'{folder.resolve()}' has no {path.suffix or 'such'} file"
    return f"{missing}; 'paceline catalog models' lists the models of the zoo"
