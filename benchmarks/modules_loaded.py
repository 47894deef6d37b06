"""Number of modules that three workflows load, each in its own process.

    .venv/bin/python benchmarks/modules_loaded.py [--package FOLDER] [--names] [--json FILE]

Workflow A measures ResNet-20 and writes the report, B predicts for a named cluster, C validates the
rows of one published table. ``--package`` counts those of another checkout's ``src``.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from common import arguments, finish

SOURCE = Path(__file__).resolve().parent.parent / "src"
MEASURE = "measure --model resnet20 --batch 8 --launches 2 --steps 3 --study walk --store walk.db"
EXPORT = "published --family hkbu --model resnet50 --export rows.csv"
WALKS = {
    "measure": (MEASURE,),
    "measure, report": (MEASURE, "report walk --store walk.db"),
    "predict": ("predict --model resnet50 --batch 64 --cluster dgx-1 -j 1x1,1x8",),
    "validate": (EXPORT, "validate --data rows.csv --mode baseline"),
}
UNCOUNTED = {EXPORT}
COUNTER = """
import sys
from paceline.cli.main import main
sys.argv = ["paceline", *sys.argv[1:]]
try:
    main()
finally:
    names = sorted(name for name in sys.modules if name.split(".")[0] == "paceline")
    print("\\nloaded", *names)
"""


def loaded(command: str, package: Path, folder: Path) -> set[str]:
    """Names of Paceline's modules in the process of a command when it ends."""
    answer = subprocess.run(
        [sys.executable, "-c", COUNTER, *command.split()],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(package)},
    )
    if answer.returncode != 0:
        raise RuntimeError(f"paceline {command} failed: {answer.stderr}")
    return set(answer.stdout.splitlines()[-1].split()[1:])


def walked(commands: Sequence[str], package: Path) -> set[str]:
    """Names of the modules that the commands of a walk load."""
    with tempfile.TemporaryDirectory() as folder:
        found = [(one, loaded(one, package, Path(folder))) for one in commands]
    return set().union(*(names for one, names in found if one not in UNCOUNTED))


def main() -> None:
    """Count, print and keep the modules of each walk."""
    parser = arguments(__doc__)
    parser.add_argument(
        "--package", type=Path, default=SOURCE, help="folder that contains paceline/"
    )
    parser.add_argument("--names", action="store_true", help="print the modules too")
    options = parser.parse_args()
    modules = {
        walk: sorted(walked(commands, options.package.resolve()))
        for walk, commands in WALKS.items()
    }
    for walk, names in modules.items():
        print(f"{walk:16} {len(names):4} modules")
        if options.names:
            print("".join(f"  {name}\n" for name in names), end="")
    finish({"modules": modules}, options.json)


if __name__ == "__main__":
    main()
