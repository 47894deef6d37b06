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

SHARED_YET = {
    "Choice",
    "Chunk",
    "Column",
    "Comparison",
    "Entry",
    "Job",
    "Kept",
    "Message",
    "Outcome",
    "Segment",
    "Sharding",
    "Table",
}
"""Names that still stand for two classes. Nothing may be added; what is renamed is taken out."""


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
    added = {name: paths for name, paths in shared.items() if name not in SHARED_YET}
    assert not added, f"defined twice: {added}"


def test_the_list_of_shared_names_only_shrinks():
    shared = {name for name, paths in classes_by_name().items() if len(paths) > 1}
    settled = SHARED_YET - shared
    assert not settled, f"no longer shared, take out of SHARED_YET: {sorted(settled)}"
