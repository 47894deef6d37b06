"""The end of a rank, in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path

import paceline.frameworks.runtime

RUNTIME = Path(paceline.frameworks.runtime.__file__).parent
FAILING = """
import atexit, time
from stepping import run_worker
atexit.register(time.sleep, 60)  # as frameworks that wait for the other ranks
def build(job, rank, world): raise RuntimeError("no device")
run_worker(build, dict)
"""


def test_a_rank_that_fails_ends_at_once_with_its_message(tmp_path):
    job = {"protocol": 1, "framework": "any", "instrument": "none"}
    (tmp_path / "job.json").write_text(json.dumps(job))
    command = [sys.executable, "-c", FAILING, str(tmp_path / "job.json"), str(tmp_path / "events")]
    variables = {"PYTHONPATH": str(RUNTIME), "RANK": "0", "WORLD_SIZE": "1"}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=50)
    assert done.returncode == 1
    assert "no device" in done.stderr
    failure = json.loads((tmp_path / "events").read_text().splitlines()[-1])
    assert (failure["event"], failure["message"]) == ("failure", "no device")
