"""The shape of the package: which package may import which, and what a quick start costs."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import paceline

ROOT = Path(paceline.__file__).parent
COMMON = {"errors", "units", "naming", "plugins", "__init__"}
ALLOWED = {
    "workload": set(),
    "hardware": set(),
    "step": set(),
    "plan": {"workload", "hardware"},
    "predictor": {"workload", "hardware", "plan", "step"},
    "store": {"step"},
    "launch": set(),
    "measurement": {"workload", "hardware", "plan", "step", "store", "launch"},
}
ALLOWED["analyse"] = ALLOWED["measurement"] | {"predictor", "measurement"}
ALLOWED["testing"] = {"workload", "step", "launch", "measurement", "store"}
ALLOWED["report"] = ALLOWED["analyse"] | {"analyse"}
ALLOWED["cli"] = ALLOWED["report"] | {"report", "testing"}


def imported_packages(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "paceline" and len(parts) > 1:
                yield parts[1]


@pytest.mark.parametrize("package", sorted(ALLOWED))
def test_a_package_imports_only_what_lies_below_it(package):
    for path in (ROOT / package).rglob("*.py"):
        inside = {p for p in imported_packages(path) if (ROOT / p).is_dir()}
        foreign = inside - ALLOWED[package] - {package}
        assert not foreign, f"{path.relative_to(ROOT)} imports {sorted(foreign)}"


def test_every_package_has_its_place():
    packages = {path.name for path in ROOT.iterdir() if (path / "__init__.py").exists()}
    assert packages == set(ALLOWED)


def test_workers_import_nothing_of_paceline():
    for path in (ROOT / "measurement" / "workers").glob("*.py"):
        if path.name != "__init__.py":
            assert not list(imported_packages(path)), path.name


@pytest.mark.parametrize("command", ["import paceline", "import paceline.cli.main"])
def test_a_quick_start_loads_no_framework_and_no_heavy_library(command):
    script = f"{command}; import sys; print(*sys.modules)"
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    loaded = set(answer.stdout.split())
    for heavy in ("torch", "scipy", "numpy", "matplotlib", "pydantic", "rich", "onnx"):
        assert heavy not in loaded, f"'{command}' loads {heavy}"
