"""What the repository must not hold, and that what it says of itself is so."""

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
    "a path of the machine it was written on": r"(?<![\w.~-])/(root|work|home|Users)/\w",
    "the host of a package registry": (
        r"\b(pypi|pythonhosted|anaconda|npmjs|crates)\.(org|com|io)\b|\b(nvcr|ghcr|quay)\.io\b"
    ),
    "a directory beside the repository": r"\.\./shared\b",
}
MODULES = {"pillow": "PIL", "scikit-learn": "sklearn"}
"""Modules that are not named like the distribution that has them."""


def tracked_texts():
    """Path and text of every file that git has or would add, but for binary ones."""
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
    """Top-level modules that the package imports, framework workers' own left out."""
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
    """A base dependency that nothing imports makes every install larger for nothing."""
    own = {path.stem for path in (ROOT / "src").rglob("*.py")} | {"paceline"}
    used = set(imported_modules()) - set(sys.stdlib_module_names) - own
    base = names_of(PROJECT["dependencies"])
    extras = PROJECT["optional-dependencies"]
    optional = {name for extra in extras if extra != "dev" for name in names_of(extras[extra])}
    assert base <= used
    assert used <= base | optional


def test_every_page_of_the_docs_is_in_their_index():
    index = (ROOT / "docs" / "index.md").read_text()
    for page in (ROOT / "docs").glob("*.md"):
        assert page.name == "index.md" or f"({page.name})" in index, page.name


def test_every_link_between_pages_leads_to_a_file():
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"
