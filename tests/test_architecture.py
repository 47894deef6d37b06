"""The shape of the package: which package may import which, and what a quick start costs."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import paceline
from paceline.frameworks import framework_registry as registry
from paceline.frameworks.command import search_path

ROOT = Path(paceline.__file__).parent
BASE = {"constants", "stats", "step", "render", "workload", "hardware", "frameworks"}
ALLOWED: dict[str, set[str]] = {
    "constants": set(),
    "stats": set(),
    "step": set(),
    "frameworks": set(),
    "workload": set(),
    "hardware": set(),
    "render": {"stats", "step"},
    "lab": set(),
    "launch": {"lab"},
    "store": {"step"},
    "predictor": BASE - {"stats"},
    "catalog": {"constants", "predictor", "hardware", "workload", "render", "frameworks"},
    "importers": {"step", "store", "render"},
}
ALLOWED["measurement"] = BASE | {"predictor", "store", "launch", "lab", "importers"}
ALLOWED["testing"] = {"workload", "launch", "lab", "measurement", "store", "frameworks", "step"}
ALLOWED["analysis"] = ALLOWED["measurement"] | {"measurement", "testing"}
ALLOWED["spec"] = {"stats", "step", "predictor", "hardware", "workload", "importers"}
ALLOWED["spec"] |= {"measurement", "constants"}
ALLOWED["calibration"] = ALLOWED["analysis"] | {"analysis", "spec"}
ALLOWED["validation"] = {"constants", "predictor", "hardware", "workload", "render"}
ALLOWED["explanation"] = ALLOWED["calibration"] | {"calibration", "validation"}
ALLOWED["report"] = ALLOWED["explanation"] | {"explanation"}
ALLOWED["study"] = ALLOWED["report"] | {"report"}
ALLOWED["publications"] = ALLOWED["study"] | {"study"}
ALLOWED["explore"] = ALLOWED["publications"] | {"publications", "catalog"}
ALLOWED["cli"] = ALLOWED["explore"] | {"explore"}
PUBLIC = ALLOWED["explore"] - {"catalog"}
"""What ``api.py`` of a package may import: it holds functions of ``import paceline``."""


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
        foreign = inside - (PUBLIC if path.name == "api.py" else ALLOWED[package]) - {package}
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
            "measurement store launch testing study render.figures predictor.search "
            "predictor.sweep predictor.per_layer workload.capture",
        ),
        ("inspect resnet20 --json", "predictor hardware measurement store frameworks"),
        ("study list --store none.db", "predictor hardware workload measurement frameworks"),
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
