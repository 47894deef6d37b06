"""Forbidden content, declared dependencies, and links between pages of the repository."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
FORBIDDEN = {
    "an absolute path of a developer's machine": r"(?<![\w.~-])/(root|work|home|Users)/\w",
    "the host of a package registry": (
        r"\b(pypi|pythonhosted|anaconda|npmjs|crates)\.(org|com|io)\b|\b(nvcr|ghcr|quay)\.io\b"
    ),
    "a directory outside the repository": r"\.\./shared\b",
}
MODULES = {"pillow": "PIL", "pyyaml": "yaml", "scikit-learn": "sklearn"}
"""Distributions whose module has another name."""


def tracked_texts():
    """Path and text of every tracked or untracked file that is not binary."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.is_file():
            content = path.read_bytes()
            if b"\0" not in content:
                yield path, content.decode("utf-8")


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_has(what):
    pattern = re.compile(FORBIDDEN[what])
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}"
        for path, text in tracked_texts()
        if path != Path(__file__)
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]
    assert not found, f"{what}: {found}"


def imported_modules():
    """Top-level modules that the package imports, without framework workers."""
    for path in (ROOT / "src" / "paceline").rglob("*.py"):
        if not {"workers", "inject", "frameworks"} & set(path.parts):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    yield from (alias.name.split(".")[0] for alias in node.names)
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    yield node.module.split(".")[0]


def names_of(requirements):
    names = {re.split(r"[=<>!~ ;\[]", line, maxsplit=1)[0] for line in requirements}
    return {MODULES.get(name, name) for name in names}


def test_every_dependency_is_used_and_everything_used_is_declared():
    """An unused base dependency makes every install larger."""
    own = {path.stem for path in (ROOT / "src").rglob("*.py")} | {"paceline"}
    used = set(imported_modules()) - set(sys.stdlib_module_names) - own
    base = names_of(PROJECT["dependencies"])
    extras = PROJECT["optional-dependencies"]
    optional = {name for extra in extras if extra != "dev" for name in names_of(extras[extra])}
    assert base <= used
    assert used <= base | optional


def test_every_page_is_in_the_index():
    index = (ROOT / "docs" / "index.md").read_text()
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").as_posix()
        assert name == "index.md" or f"({name})" in index, name


def test_every_link_between_pages_has_a_target():
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_page_named_in_a_file_exists():
    pages = re.compile(r"(?<![\w/])docs/(?:[\w-]+/)*[\w-]+\.md")
    missing = [
        f"{path.relative_to(ROOT)}: {page}"
        for path, text in tracked_texts()
        for page in pages.findall(text)
        if not (ROOT / page).exists()
    ]
    assert not missing


def test_every_path_in_the_tables_of_the_architecture_page_exists():
    page = (ROOT / "docs" / "architecture.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("|")]
    missing = []
    for row in rows:
        folders = [ROOT / "src" / "paceline", ROOT]
        for path in re.findall(r"`([\w/.-]+(?:/|\.py|\.toml|\.md))`", row):
            if "NAME" in path or path in ("manifest.toml", "api.py"):
                continue
            found = [folder / path for folder in folders if (folder / path).exists()]
            if not found:
                missing.append(path)
            else:  # a bare file name that follows is in the same folder
                folders.append(found[0] if found[0].is_dir() else found[0].parent)
    assert not missing
