"""Tables of operations: columns by their headings, units, coordinates, damaged rows."""

import gzip
from pathlib import Path

import pytest

from paceline.errors import InputError
from paceline.importers.traces import read_trace, trace_format
from paceline.step import Phase, breakdown

TABLE = Path(__file__).parents[2] / "fixtures" / "traces" / "operations.csv"


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "operations.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_steps_have_all_ranks_on_one_clock_with_coordinates():
    trace = read_trace([TABLE])
    assert (trace.program, len(trace.steps), trace.ranks) == ("operations", 3, 6)
    assert trace.common_clock
    assert trace.coordinates[5] == {"stage": "2", "dp_rank": "1"}
    step = trace.steps[0]
    assert min(step.starts) == 0.0
    assert breakdown(step, 5).exposed[Phase.BACKWARD] == pytest.approx(4 * 0.4)
    assert {task.phase for task in step.tasks if "reduce-scatter" in task.name} == {
        Phase.COMMUNICATE
    }


def test_compressed_tables_are_read(tmp_path: Path):
    path = tmp_path / "operations.csv.gz"
    path.write_bytes(gzip.compress(TABLE.read_bytes()))
    assert read_trace([path]).steps == read_trace([TABLE]).steps


def test_headings_have_units_and_ends_give_durations(tmp_path: Path):
    path = written(
        tmp_path,
        "Worker;Iteration;Operation;Start (ms);End (ms);Stream\n"
        "0;7;forward;10;30;s1\n0;7;all_reduce;20;45;s2\n",
    )
    (step,) = read_trace([path]).steps
    assert step.label == "step 7"
    assert step.seconds == pytest.approx(0.035)
    assert [task.resource for task in step.tasks] == ["s1", "s2"]


def test_damaged_rows_are_counted_and_left_out(tmp_path: Path):
    path = written(
        tmp_path,
        "rank,step,op,start,duration\n0,0,forward,0,1\n0,0,forward,x,1\n-1,0,forward,0,1\n"
        "0,0,backward,1,-2\n0,0,,1,2\n0,0\n1,0,forward,nan,1\n0,0,backward,1,2\n",
    )
    trace = read_trace([path])
    assert trace.unread == 6
    assert trace.steps[0].seconds == pytest.approx(3.0)


def test_other_tables_are_not_taken_for_operations(tmp_path: Path):
    assert trace_format(written(tmp_path, "rank,step,seconds\n0,0,1\n")) is None
    with pytest.raises(InputError, match="no header row") as caught:
        read_trace([written(tmp_path, "1,2,3\n")], "operations")
    assert "rank, step, operation" in caught.value.hint
