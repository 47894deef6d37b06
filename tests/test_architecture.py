"""The shape of the package: which package may import which, and what a quick start costs."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import paceline
from paceline.frameworks import registry
from paceline.frameworks.command import search_path

ROOT = Path(paceline.__file__).parent
ALLOWED = {
    "constants": set(),
    "statistics": set(),
    "workload": set(),
    "hardware": set(),
    "step": set(),
    "plan": {"workload", "hardware"},
    "frameworks": set(),
    "predictor": {"constants", "workload", "hardware", "plan", "step", "frameworks"},
    "store": {"step"},
    "lab": set(),
    "launch": {"lab"},
    "measurement": {
        *("workload", "hardware", "plan", "step", "store", "launch", "lab", "frameworks"),
        "statistics",
    },
}
ALLOWED["testing"] = {"workload", "step", "launch", "lab", "measurement", "store", "frameworks"}
ALLOWED["analyse"] = (
    ALLOWED["predictor"] | ALLOWED["measurement"] | {"predictor", "measurement", "testing"}
)
ALLOWED["report"] = ALLOWED["analyse"] | {"analyse"}
ALLOWED["study"] = ALLOWED["report"] | {"report"}
ALLOWED["api"] = ALLOWED["study"] | {"study"}
ALLOWED["explore"] = ALLOWED["api"] | {"api"}
ALLOWED["cli"] = ALLOWED["explore"] | {"explore"}


def imports_of(path):
    tree = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return [node for node in tree if isinstance(node, ast.Import | ast.ImportFrom)]


def imported_packages(path):
    for node in imports_of(path):
        names = [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{name}" for name in names] if node.level == 0 else []
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


def test_no_command_imports_another():
    """What two commands share lies below them, where Python reaches it too."""
    for path in (ROOT / "cli" / "commands").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert "cli.commands" not in (node.module or ""), path.name


def test_nothing_below_the_command_line_prints():
    for package in set(ALLOWED) - {"cli"}:
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    names = {alias.name for alias in node.names}
                    assert "click" not in names, path.relative_to(ROOT)


def test_every_package_has_its_place():
    packages = {path.name for path in ROOT.iterdir() if (path / "__init__.py").exists()}
    assert packages == set(ALLOWED)


WORKER_FOLDERS = [
    ROOT / "frameworks" / "runtime",
    *(one.folder for one in registry.manifests().values() if one.adapters),
]
WORKER_MODULES = [
    path for folder in WORKER_FOLDERS for path in folder.glob("*.py") if path.stem != "__init__"
]


def test_workers_import_nothing_of_paceline():
    for path in WORKER_MODULES:
        assert not list(imported_packages(path)), path.name


def test_modules_of_workers_have_names_of_their_own():
    """Folders of several families are on one search path, before the frameworks themselves."""
    names = [path.stem for path in WORKER_MODULES]
    assert len(names) == len(set(names))
    frameworks = {one.module.split(".")[0] for one in registry.frameworks().values()}
    assert not set(names) & (frameworks | sys.stdlib_module_names)


def worker_imports(path, folders):
    """Modules of workers that one imports, and those which these import."""
    names = {alias.name for node in imports_of(path) for alias in node.names}
    names |= {node.module for node in imports_of(path) if isinstance(node, ast.ImportFrom)}
    found = names & {module.stem for module in WORKER_MODULES}
    for name in found.copy():
        files = [folder / f"{name}.py" for folder in folders if (folder / f"{name}.py").exists()]
        assert files, f"{path.name} imports {name}, which is not on its search path"
        found |= worker_imports(files[0], folders)
    return found


@pytest.mark.parametrize("adapter", registry.frameworks().values(), ids=lambda one: one.name)
def test_the_search_path_of_a_worker_has_what_it_imports(adapter):
    folders = search_path(adapter)
    used = {
        folder
        for name in worker_imports(adapter.worker, folders)
        for folder in folders
        if (folder / f"{name}.py").exists()
    }
    assert used | {adapter.worker.parent} == set(folders)


def test_a_module_of_a_family_is_named_after_it():
    for path in WORKER_MODULES:
        assert path.parent.name == "runtime" or path.stem.startswith(f"{path.parent.name}_")


@pytest.mark.parametrize("command", ["import paceline", "import paceline.cli.main"])
def test_a_quick_start_loads_no_framework_and_no_heavy_library(command):
    script = f"{command}; import sys; print(*sys.modules)"
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    loaded = set(answer.stdout.split())
    for heavy in ("torch", "scipy", "numpy", "matplotlib", "pydantic", "rich", "onnx"):
        assert heavy not in loaded, f"'{command}' loads {heavy}"


@pytest.mark.parametrize(
    ("command", "packages"),
    [
        (
            "predict --model resnet50 --cluster dgx-1",
            "measurement store launch testing study report.figures predictor.search "
            "predictor.sweeps predictor.per_layer workload.capture",
        ),
        ("inspect resnet20 --json", "predictor plan hardware measurement store frameworks"),
        ("list --store none.db", "predictor plan hardware workload measurement frameworks"),
    ],
)
def test_a_command_loads_only_what_it_uses(command, packages, tmp_path):
    script = (
        "import sys; from paceline.cli.main import main\n"
        f"sys.argv = ['paceline', *{command.split()!r}]\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(*sys.modules)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path
    )
    loaded = answer.stdout.splitlines()[-1].split()
    assert "paceline.cli.output" in loaded
    assert [p for p in packages.split() if f"paceline.{p}" in loaded] == []
