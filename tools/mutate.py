"""Seeded mutation test of the predictor and the operations.

Draws mutants, applies each in a temporary copy of the repository and runs the quick tests that call
the mutated function, those named after its module first, until one fails::

    .venv/bin/python tools/mutate.py --mutants 80 --seed 1

One mutant runs at a time, at low priority. Outcomes are appended to a file; a second call with the
same arguments continues there. ``--again`` repeats the survivors, after tests were added.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from mutants import Mutant, mutants

ROOT = Path(__file__).parents[1]
PACKAGES = ("predictor", "workload/ops")
TESTS = ("predictor", "workload", "validation", "calibration", "explanation", "spec", "tools")
"""Directories of quick tests that use these packages."""


@dataclass(frozen=True)
class Outcome:
    """A mutant and what the tests did: ``killed``, ``survived``, ``timeout`` or ``not reached``."""

    identity: str
    module: str
    line: int
    kind: str
    outcome: str
    seconds: float
    tests: int
    test: str
    diff: str


@dataclass(frozen=True)
class Drawn:
    """A mutant of a module, by the module's path in the package."""

    module: str
    mutant: Mutant
    source: str

    @property
    def diff(self) -> str:
        """The error as a diff."""
        return self.mutant.diff(self.source, self.module)

    @property
    def identity(self) -> str:
        """Hash of the mutated source, which names a mutant between commits."""
        text = self.module + self.mutant.applied(self.source)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def draw(root: Path, seed: int, count: int, only: str) -> list[Drawn]:
    """A sample: kinds of error with equal probability, then one mutant of that kind."""
    by_kind: dict[str, list[Drawn]] = {}
    for package in PACKAGES:
        for path in sorted((root / "src" / "paceline" / package).rglob("*.py")):
            module = str(path.relative_to(root / "src" / "paceline"))
            if only in module:
                source = path.read_text(encoding="utf-8")
                for mutant in mutants(source):
                    by_kind.setdefault(mutant.kind, []).append(Drawn(module, mutant, source))
    rng = random.Random(seed)
    for found in by_kind.values():
        rng.shuffle(found)
    drawn: list[Drawn] = []
    while len(drawn) < count and any(by_kind.values()):
        kind = rng.choice(sorted(kind for kind, found in by_kind.items() if found))
        drawn.append(by_kind[kind].pop())
    return drawn


def copy_of(root: Path, folder: Path) -> Path:
    """A copy of the files that git knows."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    copy = folder / "paceline"
    for name in filter(None, listed.stdout.split("\0")):
        if (root / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / name, copy / name)
    return copy


def run_pytest(
    copy: Path, arguments: Sequence[str], limit_seconds: float, **variables: str
) -> tuple[int | None, str]:
    """Exit code (None at the time limit) and output of the quick tests in a copy."""
    path = os.pathsep.join([str(copy / "src"), str(ROOT / "tools")])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", **variables}
    command = ["nice", "-n", "10", sys.executable, "-m", "pytest", "--quick", "-q"]
    try:
        ended = subprocess.run(
            [*command, "-p", "no:cacheprovider", "--tb=line", *arguments],
            cwd=copy,
            env=environment,
            capture_output=True,
            text=True,
            timeout=limit_seconds,
        )
    except subprocess.TimeoutExpired:
        return None, ""
    return ended.returncode, ended.stdout


def reach(copy: Path, folder: Path) -> dict[str, dict[str, float]]:
    """Seconds of each test that calls a function, by ``module:first line`` of the function."""
    digest = hashlib.sha256()
    for path in sorted([*(copy / "src").rglob("*.py"), *(copy / "tests").rglob("*.py")]):
        digest.update(path.read_bytes())
    file = folder / f"reach-{digest.hexdigest()[:12]}.json"
    if not file.exists():
        print("recording which tests call which functions ...", flush=True)
        source = str(copy / "src" / "paceline")
        code, output = run_pytest(
            copy,
            ["-p", "mutation_reach", *(f"tests/{name}" for name in TESTS)],
            3600,
            MUTATION_SOURCE=source,
            MUTATION_REACH=str(file),
        )
        if not file.exists():
            sys.exit(f"the tests do not run without a mutation:\n{output[-3000:]}")
        if code:
            print(f"tests that fail without a mutation are left out:\n{output[-1000:]}")
    loaded: dict[str, dict[str, float]] = json.loads(file.read_text())
    return loaded


def chosen_tests(drawn: Drawn, reached: dict[str, dict[str, float]]) -> list[str]:
    """Tests of the mutated function, then those of other functions of its module.

    A cache may hide a call from a test, and code that runs at import has no caller, hence the
    second group. Tests named after the module come first, then golden predictions and short tests.
    """
    direct = reached.get(f"{drawn.module}:{drawn.mutant.function}", {})
    seconds: dict[str, float] = {}
    for key, tests in reached.items():
        if key.startswith(f"{drawn.module}:"):
            seconds |= tests
    name = Path(drawn.module).stem

    def order(test: str) -> tuple[bool, bool, bool, float]:
        file = test.split("::")[0]
        return test not in direct, name not in file, "golden" not in file, seconds[test]

    return sorted(seconds, key=order)


def tried(
    drawn: Drawn, copy: Path, reached: dict[str, dict[str, float]], limit_seconds: float
) -> Outcome:
    """Apply a mutant in the copy, run its tests, restore the file."""
    tests = chosen_tests(drawn, reached)
    outcome, test, start = "not reached", "", time.perf_counter()
    if tests:
        listed = copy.parent / "tests.txt"
        listed.write_text("\n".join(tests))
        path = copy / "src" / "paceline" / drawn.module
        path.write_text(drawn.mutant.applied(drawn.source), encoding="utf-8")
        try:
            code, output = run_pytest(copy, ["-x", f"@{listed}"], limit_seconds)
        finally:
            path.write_text(drawn.source, encoding="utf-8")
        outcome = {None: "timeout", 0: "survived"}.get(code, "killed")
        failed = [
            line for line in output.splitlines() if line.startswith(("FAILED", "ERROR", "E  "))
        ]
        test = failed[0][:160] if failed else ""
    mutant = drawn.mutant
    return Outcome(
        drawn.identity,
        drawn.module,
        mutant.line,
        mutant.kind,
        outcome,
        round(time.perf_counter() - start, 1),
        len(tests),
        test,
        drawn.diff,
    )


def outcomes_in(file: Path) -> dict[str, Outcome]:
    """Recorded outcomes by identity; the last one counts."""
    if not file.exists():
        return {}
    rows = [Outcome(**json.loads(line)) for line in file.read_text().splitlines()]
    return {row.identity: row for row in rows}


def report(rows: Sequence[Outcome]) -> Iterator[str]:
    """Counts by module and by kind, then the diff of each mutant that no test failed on."""
    killed = [row for row in rows if row.outcome in {"killed", "timeout"}]
    for title, key in (("package", _package), ("kind", _kind)):
        total, caught = Counter(map(key, rows)), Counter(map(key, killed))
        yield f"{title:<24} killed of"
        yield from (f"{name:<24} {caught[name]:6} {total[name]:2}" for name in sorted(total))
    share = len(killed) / len(rows) if rows else 0.0
    yield f"{'all':<24} {len(killed):6} {len(rows):2}  ({share:.0%})"
    for row in rows:
        if row not in killed:
            yield f"\n{row.outcome} ({row.kind}, {row.tests} tests, {row.identity})\n{row.diff}"


def _package(row: Outcome) -> str:
    return str(Path(row.module).parent)


def _kind(row: Outcome) -> str:
    return row.kind


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--mutants", type=int, default=80)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="part of the module's path, e.g. comm/")
    parser.add_argument("--limit", type=float, default=400.0, help="seconds per mutant")
    parser.add_argument("--again", action="store_true", help="repeat survivors")
    parser.add_argument("--results", type=Path, default=Path(tempfile.gettempdir()) / "mutation")
    arguments = parser.parse_args()
    arguments.results.mkdir(parents=True, exist_ok=True)
    file = arguments.results / f"outcomes-{arguments.seed}.jsonl"
    sample = draw(ROOT, arguments.seed, arguments.mutants, arguments.only)
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        copy = copy_of(ROOT, Path(folder))
        done = outcomes_in(file)
        reached: dict[str, dict[str, float]] = {}
        for number, drawn in enumerate(sample, 1):
            known = done.get(drawn.identity)
            if known and not (arguments.again and known.outcome in {"survived", "not reached"}):
                continue
            reached = reached or reach(copy, arguments.results)
            row = tried(drawn, copy, reached, arguments.limit)
            done[row.identity] = row
            with file.open("a", encoding="utf-8") as out:
                out.write(json.dumps(asdict(row)) + "\n")
            print(f"{number}/{len(sample)} {row.outcome} {row.seconds} s {row.module}:{row.line}")
            sys.stdout.flush()
    print("\n".join(report([done[drawn.identity] for drawn in sample])))


if __name__ == "__main__":
    main()
