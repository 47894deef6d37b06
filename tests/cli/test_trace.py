"""``paceline trace``: analysis of traces without importing them."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from commandline import next_commands, run
from paceline.cli.main import cli
from paceline.errors import InputError

TRACES = Path(__file__).parents[1] / "fixtures" / "traces"


def test_the_slow_stage_of_a_table_is_named_and_valued():
    text = run(["trace", str(TRACES / "operations.csv")])
    assert "3 steps of 6 ranks" in text
    assert "stage 2 is slow" in text
    found = json.loads(run(["trace", str(TRACES / "operations.csv"), "--json"]))
    assert found["schema"] == "paceline/trace/1"
    assert found["cause"] == "stage 2"
    assert found["slowdown"] == pytest.approx(found["replayed_seconds"] / found["ideal_seconds"])
    best = max(found["repairs"], key=lambda one: one["speed_up"])
    assert (best["by"], best["repaired"]) == ("stage", "stage 2")


def test_ranks_of_a_profiler_are_put_on_one_clock(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = [str(TRACES / f"kineto_gloo_rank{rank}.json") for rank in (0, 1)]
    text = run(["trace", *files, "--out", "step.json", "--heatmap", "map.svg"])
    assert "rank 1 is slow" in text
    assert "Messages: 2, 1.09 MB" in text
    events = json.loads(Path("step.json").read_text())["traceEvents"]
    ends = {
        rank: [
            e["ts"] + e["dur"]
            for e in events
            if e["ph"] == "X" and e["pid"] == rank and e["cat"] == "communicate"
        ]
        for rank in (0, 1)
    }
    assert ends[0] == pytest.approx(ends[1], abs=2000.0), "microseconds"
    drawn = Path("map.svg").read_text()
    assert "Ranks over time" in drawn
    assert "rank 1: backward" in drawn


@pytest.mark.parametrize(
    "name", ["pydtnn_recorded.trace.csv", "cntk_profile.json", "mxnet_cut.json"]
)
def test_traces_of_other_programs_are_analysed(name):
    found = json.loads(run(["trace", str(TRACES / name), "--json"]))
    assert found["step_seconds"] > 0
    assert found["steps"] >= 1


def test_next_lines_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = run(["trace", str(TRACES / "operations.csv")])
    lines = list(next_commands(text))
    assert len(lines) == 2
    for line in lines:
        run(line)


def test_mistakes_are_errors_with_a_hint():
    with pytest.raises(InputError, match="no training step"):
        run(["trace", str(TRACES / "horovod_recorded_startup.json")])
    with pytest.raises(InputError, match="trace format not recognised"):
        run(["trace", str(TRACES / "layers.csv")])
    answer = CliRunner().invoke(cli, ["trace", "nowhere.json"])
    assert answer.exit_code == 2
