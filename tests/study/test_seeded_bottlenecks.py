"""Bottlenecks seeded in scripts: the right one comes first, on a machine that others may use.

`benchmarks/seeded_bottlenecks.py` has all kinds, and compares sizes with the truth.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SEEDS = Path(__file__).parents[2] / "benchmarks" / "seeds"
CAUSES = {
    "slow_input": "input",
    "rank_forward": "straggler",
    "rank_backward": "straggler",
    "blocked_ddp": "blocked host",
    "checkpoint": "pauses",
    "gc": "garbage collection",
}
STEPS = 24

pytest.importorskip("torch")
pytestmark = [pytest.mark.slow, pytest.mark.torch]


def paceline(*words):
    answer = subprocess.run(
        [sys.executable, "-m", "paceline", *words], capture_output=True, text=True, timeout=300
    )
    assert answer.returncode == 0, answer.stderr[-2000:]
    return answer.stdout


def explained(script, kind, store):
    many = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    for start in ([], many):
        command = [sys.executable, *start, str(SEEDS / f"{script}.py"), kind, str(STEPS)]
        given = ["--study", "s", "--model", "net", "--store", str(store), "--json"]
        paceline("run", *given, "--", *command)
    found = json.loads(paceline("explain", "s", "--store", str(store), "--json"))
    parts = sum(item["seconds"] for item in found["waterfall"])
    assert parts == pytest.approx(found["observed_step_seconds"])
    rest = [i["seconds"] for i in found["waterfall"] if i["kind"] == "unexplained"]
    assert sum(rest) > -0.05 * found["observed_step_seconds"]
    return found


@pytest.mark.parametrize("script", ["vision", "sequence"])
@pytest.mark.parametrize("kind", CAUSES)
def test_the_seeded_bottleneck_comes_first(script, kind, tmp_path):
    found = explained(script, kind, tmp_path / "paceline.db")
    first = found["findings"][0]
    assert first["cause"] == CAUSES[kind], [one["verdict"] for one in found["findings"]]
    where = {"rank_forward": "forward", "rank_backward": "backward"}.get(kind)
    if where is not None:
        assert first["verdict"].startswith(f"straggler: rank 1 is slow in {where}")


def test_a_remedy_is_tried(tmp_path):
    """Data-loader workers take the wait for input away where a core is free."""
    store = tmp_path / "paceline.db"
    explained("vision", "slow_input", store)
    tried = ["--try", "num_workers=1", "--pairs", "1", "--store", str(store), "--json"]
    (one,) = json.loads(paceline("explain", "s", *tried))["tried"]
    assert one["try"] == "num_workers=1"
    assert one["measured_seconds"] > 0.3 * 0.03
