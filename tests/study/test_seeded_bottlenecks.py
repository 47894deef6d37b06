"""Bottlenecks made for real in a script of its own: the right one is named first.

`benchmarks/seeded_bottlenecks.py` makes them under ``measure`` too, and says how large each is.
Layers sleep instead of computing, so what else runs here matters little; the two cases that
compute are left to the benchmark.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "fixtures" / "scripts" / "seeded_bottleneck.py"
CAUSES = {
    "large_gradient": "large gradient",
    "tiny_buckets": "buckets",
    "slow_input": "input",
    "slow_rank": "straggler",
    "slow_backward": "straggler",
    "no_overlap": "no overlap",
    "slow_start": "slow start of collectives",
}
STEPS = 10

pytest.importorskip("torch")
pytestmark = [pytest.mark.slow, pytest.mark.torch]


def paceline(*words):
    answer = subprocess.run(
        [sys.executable, "-m", "paceline", *words], capture_output=True, text=True, timeout=300
    )
    assert answer.returncode == 0, answer.stderr[-2000:]
    return answer.stdout


def explained(case, store):
    many = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    for start in ([], many):
        command = [sys.executable, *start, str(SCRIPT), case, str(STEPS)]
        given = ["--study", "s", "--model", "net", "--store", str(store), "--json"]
        paceline("run", *given, "--", *command)
    return json.loads(paceline("explain", "s", "--store", str(store), "--json"))


def findings_of_training(case, directory):
    """What is found beside programs that had the cores; three tries where there are such.

    Of a machine that is crowded enough nothing else can be told.
    """
    for attempt in range(3):
        found = explained(case, directory / f"{attempt}.db")
        parts = sum(item["seconds"] for item in found["waterfall"])
        assert parts == pytest.approx(found["measured_step_seconds"])
        told = [finding for finding in found["findings"] if finding["cause"] != "cores"]
        crowded = len(told) < len(found["findings"])
        if not crowded or (told and told[0]["cause"] == CAUSES[case]):
            break
    return told


@pytest.mark.parametrize("case", CAUSES)
def test_the_seeded_bottleneck_comes_first(case, tmp_path):
    told = findings_of_training(case, tmp_path)
    assert told[0]["cause"] == CAUSES[case], [one["verdict"] for one in told]
    where = {"slow_rank": "forward", "slow_backward": "backward"}.get(case)
    if where is not None:
        assert told[0]["verdict"].startswith(f"straggler: rank 1 is slow in {where}")


def test_a_healthy_run_blames_nothing_that_training_does(tmp_path):
    """Other programs may have had the cores; the training itself has no fault."""
    found = explained("healthy", tmp_path / "paceline.db")
    outside = {"cores", "jitter"}
    assert [f["verdict"] for f in found["findings"] if f["cause"] not in outside] == []
