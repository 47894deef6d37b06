"""Resources used by launches, sampled in a separate process; GPUs from a fake NVML."""

import json
import os
import subprocess
import sys
import time

import pytest
from builders import a_launch

from paceline.analysis.configurations import grouped
from paceline.analysis.resource_tables import resource_tables
from paceline.measurement.resources import sampler
from paceline.measurement.resources.resource_usage import sampled, used_by_phase
from paceline.store import Outcome, RankSteps, Status

NVML = r"""
typedef struct { unsigned gpu, memory; } rates;
typedef struct { unsigned long long total, free, used; } memory;
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {
    *handle = (void *)(unsigned long)(index + 1); return 0;
}
int nvmlDeviceGetUtilizationRates(void *handle, rates *told) {
    told->gpu = 40 + 20 * (unsigned)(unsigned long)handle; told->memory = 1; return 0;
}
int nvmlDeviceGetPowerUsage(void *handle, unsigned *milliwatts) {
    if ((unsigned long)handle == 2) return 3;  /* not supported */
    *milliwatts = 250000; return 0;
}
int nvmlDeviceGetMemoryInfo(void *handle, memory *told) {
    told->total = 16ull << 30; told->used = 4ull << 30; told->free = 12ull << 30; return 0;
}
"""


@pytest.fixture
def nvml(tmp_path, monkeypatch):
    """A fake NVML library of two GPUs, of which the second does not report its power."""
    place = tmp_path / "nvml"
    place.mkdir()
    (place / "nvml.c").write_text(NVML)
    library = place / "libnvidia-ml.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, place / "nvml.c"], check=True)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(place))


def wait_for_samples(path, count):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if path.exists() and path.read_text().count("\n") >= count:
            return
        time.sleep(0.05)
    raise AssertionError(f"no {count} samples in {path}")


def run_sampled(directory, samples=4):
    """A rank that computes while it is sampled; its events and the file of samples."""
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    events = [{"event": "hello", "rank": 0, "pid": busy.pid, "time": time.time()}]
    (directory / "rank-0.events.jsonl").write_text(json.dumps(events[0]) + "\n")
    events.append({"event": "ready", "rank": 0, "time": time.time()})
    try:
        with sampled(directory, wanted=True, seconds=0.1):
            wait_for_samples(directory / "samples.jsonl", samples)
    finally:
        busy.kill()
        busy.wait()
    return [*events, {"event": "steps", "rank": 0, "time": time.time()}]


def test_launch_records_cores_memory_network_gpus_and_power(tmp_path, nvml):
    used = used_by_phase(tmp_path, [run_sampled(tmp_path)])["training"]
    assert 0.0 < used["cores_busy"] <= 1.1
    assert used["memory_bytes"] > 1e6
    assert used["network_bytes_per_second"] >= 0.0
    assert used["gpu_busy"] == pytest.approx(0.7)
    assert used["gpu_memory_bytes"] == 2 * 4 * 2**30
    assert used["watts"] >= 250.0


def test_without_a_library_there_are_no_gpus(monkeypatch):
    def missing(name):
        raise OSError(name)

    monkeypatch.setattr("ctypes.CDLL", missing)
    assert sampler.Gpus().sample() == []


def test_nothing_is_started_unless_it_is_wanted(tmp_path):
    with sampled(tmp_path, wanted=False):
        pass
    assert not (tmp_path / "samples.jsonl").exists()


def test_sampler_ends_with_its_parent(tmp_path):
    code = (
        "import os, sys; from pathlib import Path\n"
        "from paceline.measurement.resources.resource_usage import sampled\n"
        "with sampled(Path(sys.argv[1]), True, 0.05):\n"
        "    while not (Path(sys.argv[1]) / 'samples.jsonl').exists(): pass\n"
        "    os._exit(1)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], timeout=60)
    path = tmp_path / "samples.jsonl"
    wait_for_samples(path, 1)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        before = path.stat().st_size
        time.sleep(1.0)
        if path.stat().st_size == before:
            return
    raise AssertionError("it still samples")


@pytest.mark.parametrize("line", ["", "{", '{"time": 1}', "[1, 2]", '{"time": "x", "gpus": 3}'])
def test_damaged_samples_are_ignored(tmp_path, line):
    (tmp_path / "samples.jsonl").write_text(line + "\n" + line)
    events = [{"event": kind, "time": t} for t, kind in enumerate(("hello", "ready", "steps"))]
    assert used_by_phase(tmp_path, [events]) is None
    assert used_by_phase(tmp_path, []) is None


def test_restarted_counters_are_ignored(tmp_path):
    def sample(moment, joules):
        return {
            "time": moment,
            "cpu_seconds": {"0": moment},
            "memory_bytes": {"0": 1e6},
            "network_bytes": 1e6 * moment,
            "package_joules": joules,
            "gpus": [],
            "own_cpu_seconds": 0.001,
        }

    samples = [sample(1.0, 100.0), sample(2.0, 150.0), sample(3.0, 2.0), sample(4.0, 52.0)]
    (tmp_path / "samples.jsonl").write_text("\n".join(map(json.dumps, samples)))
    events = [{"event": "ready", "time": 0.5}, {"event": "steps", "time": 5.0}]
    used = used_by_phase(tmp_path, [events])["training"]
    assert used["watts"] == pytest.approx(50.0)
    assert used["cores_busy"] == pytest.approx(1.0)
    assert used["network_bytes_per_second"] == pytest.approx(1e6)
    assert used["gpu_busy"] is None


def test_tables_contain_samples_and_costs():
    phase = {
        "seconds": 10.0,
        "cores_busy": 1.9,
        "memory_bytes": 5e8,
        "network_bytes_per_second": 2e6,
        "gpu_busy": None,
        "gpu_memory_bytes": None,
        "watts": 50.0,
    }
    facts = {"resources": {"training": phase, "sampler_share": 0.002}}
    ranks = tuple(RankSteps(rank, (9.0, 0.5)) for rank in range(2))
    outcome = Outcome(Status.FINISHED, "", ranks=ranks, facts=facts)
    launch = a_launch(world_size=2, batch_per_rank=50, warmup_steps=1, outcome=outcome)
    used, worth = resource_tables(grouped([launch]), node_price=2.0)
    assert "0.20 % of a core" in used.note
    assert worth.rows[0][1:] == pytest.approx((200.0, 4.0, 360_000.0))
    assert resource_tables([], None) == []
    assert os.sysconf("SC_CLK_TCK") == sampler.TICKS
