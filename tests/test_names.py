"""One name, one meaning: no public class name stands for two classes."""

import ast
from collections import defaultdict
from pathlib import Path

import paceline

ROOT = Path(paceline.__file__).parent
SCRIPTS = {
    *("inject", "runtime", "torch", "horovod", "tensorflow", "keras", "jax", "paddle", "legacy"),
}
"""Directories of framework workers and of what `paceline run` injects: programs of their own."""


def classes_by_name():
    found = defaultdict(list)
    for path in ROOT.rglob("*.py"):
        if not SCRIPTS & set(path.relative_to(ROOT).parts):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found[node.name].append(str(path.relative_to(ROOT)))
    return found


def test_no_public_class_name_stands_for_two_classes():
    shared = {name: sorted(paths) for name, paths in classes_by_name().items() if len(paths) > 1}
    assert not shared, f"defined twice: {shared}"
