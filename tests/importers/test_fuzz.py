"""Damaged logs and traces: no traceback, finite figures, bounded memory."""

import math
import subprocess
import sys
from pathlib import Path

import pytest
from mutations import SAMPLES, mutated

from paceline.errors import PacelineError
from paceline.explanation.trace_analysis import TraceAnalysis, analyse_trace
from paceline.importers.import_launches import UserFacts, launch_of_log, launch_of_trace
from paceline.importers.logs import ParsedLog, read_log, readers
from paceline.importers.traces import ParsedTrace, read_layer_trace, read_trace
from paceline.render.figures.heatmap import heatmap_info
from paceline.step import breakdown
from paceline.step.serialise import chrome_trace

TOLD = UserFacts(model="x", batch_per_rank=8, ranks=2)


def check_log(log: ParsedLog, path: Path) -> None:
    assert 0 <= log.unread_lines <= log.lines
    assert all(math.isfinite(record.seconds) and record.seconds > 0 for record in log.steps)
    assert all(math.isfinite(value) and value >= 0 for value in log.phases.values())
    if log.throughput is not None:
        assert math.isfinite(log.throughput.per_second)
        assert log.throughput.per_second > 0
    if log.step_seconds is not None:
        assert math.isfinite(log.step_seconds)
    launch_of_log(log, path, "fuzz", TOLD)


def check_trace(trace: ParsedTrace, path: Path) -> None:
    for step in trace.steps:
        assert math.isfinite(step.seconds)
        parts = breakdown(step)
        assert math.isclose(sum(parts.exposed.values()), step.seconds, rel_tol=1e-6, abs_tol=1e-9)
        chrome_trace(step)
    launch_of_trace(trace, path, "fuzz", TOLD)


def check_analysis(found: TraceAnalysis) -> None:
    remedies = found.remedies
    assert math.isfinite(remedies.slowdown)
    assert math.isfinite(remedies.launching)
    assert all(math.isfinite(one.step_seconds) for one in remedies.remedies)
    heatmap_info(found.typical)


def read_everything(path: Path, original: Path) -> None:
    """Every way in; errors for the user are fine, anything else is not."""
    attempts = [
        lambda: check_log(read_log(path), path),
        lambda: check_trace(read_trace([path]), path),
        lambda: read_layer_trace(path),
        lambda: check_analysis(analyse_trace([path])),
    ]
    attempts += [
        lambda name=name: check_log(read_log(path, name), path)
        for name in readers()
        if original.name.startswith(name.split("-")[0])
    ]
    for attempt in attempts:
        try:
            attempt()
        except PacelineError as error:
            assert error.message
            assert error.hint


def fuzz(seeds: range, tmp_path: Path) -> None:
    for seed in seeds:
        original, data = mutated(seed)
        path = tmp_path / original.name
        path.write_bytes(data)
        try:
            read_everything(path, original)
        except Exception as error:
            raise AssertionError(f"mutation {seed} of {original.name}: {error!r}") from error


def test_samples_themselves_pass_the_check(tmp_path: Path):
    for original in SAMPLES:
        read_everything(original, original)


@pytest.mark.thorough
def test_a_few_mutations(tmp_path: Path):
    fuzz(range(200), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_five_thousand_mutations(part: int, tmp_path: Path):
    fuzz(range(1000 + part * 500, 1500 + part * 500), tmp_path)


MEGABYTES = 200
HUGE_FILES = {
    "steps": b"I1115 20:35:56.473328  4672 solver.cpp:239] "
    b"Iteration 2 (2.18 iter/s, 0.915s/2 iters), loss = 1.8945e-05\n",
    "one line": b"0123456789" * 100_000,
    "nested": b'[{"ph":"X","ts":1,"a":' * 1000,
    "events": b'{"ph":"B","name":"ALLREDUCE","ts":1,"pid":1},{"ph":"E","ts":5,"pid":1},\n',
    "bytes": bytes(range(256)) * 1000,
    "operations": b"0,1,forward,1,2\n1,1,forward,1,2\n0,1,all_reduce,3,4\n1,1,all_reduce,3,4\n",
}
HEADS = {"events": b"[\n", "nested": b"[\n", "operations": b"rank,step,op,start,duration\n"}
PROGRAM = """
import sys
from pathlib import Path
sys.path[:0] = {path!r}
from test_fuzz import read_everything
from test_fuzz import HUGE_FILES
block = HUGE_FILES[{kind!r}]
path = Path({file!r})
with path.open("wb") as file:
    file.write({head!r})
    for _ in range({megabytes} * 1_000_000 // len(block) + 1):
        file.write(block)
read_everything(path, path)
status = Path("/proc/self/status").read_text()  # getrusage counts the parent's peak too
print(int(status.split("VmHWM:")[1].split()[0]) // 1024)
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", HUGE_FILES)
def test_two_hundred_megabytes_are_read_in_bounded_memory(kind: str, tmp_path: Path):
    program = PROGRAM.format(
        path=[str(Path(__file__).parent), str(Path(__file__).parents[1])],
        kind=kind,
        file=str(tmp_path / f"horovod {kind}.json"),
        head=HEADS.get(kind, b""),
        megabytes=MEGABYTES,
    )
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=1800
    )
    assert answer.returncode == 0, answer.stderr[-2000:]
    assert int(answer.stdout) < 1500  # megabytes, interpreter and all
