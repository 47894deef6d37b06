"""What watched processes wrote, as ranks, steps and phases."""

import json
from pathlib import Path
from typing import Any

import pytest

from paceline.measurement.recording.collect import (
    Lifetime,
    rank_step,
    read_processes,
    same_exchanges,
    step_spans,
    watched_job,
)
from paceline.step import Phase, breakdown
from paceline.step.critical_states import profile_states
from paceline.step.state_profile import total


def a_step(**changes: Any) -> dict[str, Any]:
    """Ten seconds: input 1, forward 2, backward 4 with two buckets, clipping 1, update 2."""
    return {
        "step_seconds": 10.0,
        "cpu_seconds": 9.0,
        "segments": [["input", 0.0, 1.0], ["backward", 3.0, 7.0], ["update", 8.0, 10.0]],
        "messages": [["bucket", 100.0, 4.0, 5.0], ["bucket", 50.0, 6.0, 6.9]],
        "fetches": 1,
        "samples": 8,
        "loss": None,
        **changes,
    }


def write(
    directory: Path, pid: int, rank: int, world: int, steps: list[dict[str, Any]], **more: Any
) -> None:
    events: list[dict[str, Any]] = [
        {"event": "hello", "rank": rank, "world": world, "pid": pid, "versions": {"torch": "2"}},
        {"event": "watched", "steps": steps},
        *more.get("events", [{"event": "end", "rank": rank, "forks": 0, "memory": {}}]),
    ]
    path = directory / f"process-host-{pid}.events.jsonl"
    fields = {"time": 1.0, **more.get("every", {})}
    path.write_text("\n".join(json.dumps({**fields, **e}) for e in events) + '\n{"event": "wat')


def exposed(step: dict[str, Any]) -> dict[str, float]:
    from paceline.importers.traces.parsing.spans import measured_step

    parts = breakdown(measured_step({0: step_spans(step)}, begins={0: 0.0})).exposed
    return {str(phase): seconds for phase, seconds in parts.items()}


def test_forward_is_between_input_and_backward():
    assert exposed(a_step()) == pytest.approx(
        {
            "input": 1.0,
            "forward": 2.0,
            "backward": 3.0,  # until the last bucket was handed over
            "communicate": 0.9,
            "other": 1.1,
            "update": 2.0,
        }
    )


def test_a_collective_of_the_script_s_own_is_no_host_time():
    step = a_step(messages=[["all_reduce", 100.0, 7.0, 8.0]])
    parts = exposed(step)
    assert parts["communicate"] == pytest.approx(1.0)
    assert "other" not in parts


def test_a_collective_of_some_ranks_does_not_synchronise_all():
    segments = [*a_step()["segments"], ["group wait", 7.2, 7.8]]
    step = rank_step(a_step(segments=segments, begun=0.0))
    assert ("group collective", 7.2, 7.8) in step.intervals
    late = rank_step(a_step(begun=0.0))
    found = profile_states([{0: step, 1: late}] * 4)
    assert total(found.critical, ("collective",)) == 0.0
    assert found.step_seconds == pytest.approx(10.0)


def test_without_a_loader_forward_begins_with_the_step():
    step = a_step(segments=[["backward", 3.0, 7.0], ["update", 8.0, 10.0]], messages=[])
    assert exposed(step)["forward"] == pytest.approx(3.0)


def test_forward_begins_with_the_call_of_a_module():
    """Before it, the host prepares the batch; a step without calls has no such evidence."""
    segments = [["forward", 1.5, 2.9], ["backward", 3.0, 7.0], ["update", 8.0, 10.0]]
    parts = exposed(a_step(segments=segments))
    assert parts["forward"] == pytest.approx(1.5)


def test_gradients_by_hand_are_sent_before_the_update():
    """A loss after backward, and metrics after the update, are no gradients."""
    sent = [("all_reduce", 4.0, 0.5), ("all_reduce", 1e6, 7.1), ("all_reduce", 4.0, 7.5)]
    messages = [[name, size, at, at + 0.1] for name, size, at in sent]
    spans = [span for span in step_spans(a_step(messages=messages)) if span.size_bytes]
    assert [span.name for span in spans] == ["all_reduce", "gradients", "all_reduce"]
    messages[1][0] = "reduce_scatter_tensor"  # FSDP
    spans = [span for span in step_spans(a_step(messages=messages)) if span.size_bytes]
    assert "gradients" not in [span.name for span in spans]


def test_micro_batches_have_a_forward_each():
    segments = [
        ["input", 0.0, 1.0],
        ["backward", 2.0, 4.0],
        ["input", 4.0, 5.0],
        ["backward", 6.0, 8.0],
        ["update", 8.0, 10.0],
    ]
    parts = exposed(a_step(segments=segments, messages=[]))
    assert parts == pytest.approx({"input": 2, "forward": 2, "backward": 4, "update": 2})


def test_ranks_keep_the_steps_that_all_took(tmp_path: Path):
    write(tmp_path, 11, 1, 2, [a_step(step_seconds=12.0)] * 3)
    write(tmp_path, 10, 0, 2, [a_step()] * 4)
    job = watched_job(read_processes(tmp_path))
    assert job is not None
    assert (job.world, job.samples, job.kept) == (2, 8, (0, 1, 2))
    assert [rank.wall_seconds for rank in job.rank_steps()] == [(10.0,) * 3, (12.0,) * 3]
    step = job.median_step(skip=1)
    assert step is not None
    assert step.ranks == [0, 1]
    assert job.notes == ()


def test_a_time_that_decreases_by_an_error_of_the_clock_loses_no_step(tmp_path: Path):
    """A lost step would compare different steps of the ranks."""
    marks = [[0.0, 0.0, 0.0], [1.0, 0.9, -1e-6], [10.0, 9.0, 0.1]]
    write(tmp_path, 10, 0, 1, [a_step(marks=marks), a_step()])
    (process,) = read_processes(tmp_path)
    assert len(process.steps) == 2


def test_steps_with_an_evaluation_in_them_are_left_out(tmp_path: Path):
    write(tmp_path, 10, 0, 1, [a_step(), a_step(fetches=40), a_step(), a_step()])
    job = watched_job(read_processes(tmp_path))
    assert job is not None
    assert job.kept == (0, 2, 3)
    assert "evaluation" in job.notes[0]


def test_inconsistencies_are_reported(tmp_path: Path):
    write(tmp_path, 10, 0, 4, [a_step()] * 3)
    write(tmp_path, 11, 0, 4, [a_step()] * 2)
    job = watched_job(read_processes(tmp_path))
    assert job is not None
    assert "have the same rank (processes: 2, ranks: 1)" in job.notes[0]
    assert "only 1 of 4 ranks" in job.notes[1]


def test_failure_is_recorded_with_its_line(tmp_path: Path):
    failure = {"event": "failure", "kind": "ValueError", "message": "no", "place": "train.py:3"}
    write(tmp_path, 10, 0, 1, [a_step()], events=[failure])
    (process,) = read_processes(tmp_path)
    assert process.failure == "ValueError: no at train.py:3"
    assert not process.ended


def test_ranks_report_cores_loaders_and_garbage_collection(tmp_path: Path):
    steps = [a_step(delay_seconds=0.5, collection_seconds=0.1)] * 4
    again = {"event": "watched", "steps": steps, "message_delay_seconds": 6.0}
    events = [{**again, "loader_workers": 3}, {"event": "end", "rank": 0, "forks": 0, "memory": {}}]
    write(tmp_path, 10, 0, 2, steps, events=events)
    write(tmp_path, 11, 1, 2, [a_step(collection_seconds=0.3)] * 8)
    job = watched_job(read_processes(tmp_path))
    assert job is not None
    first, second = job.rank_steps()
    assert (first.delay_seconds, second.delay_seconds) == ((0.5,) * 8, ())
    assert job.ranks[0].message_delay_seconds == pytest.approx(1.5), "of the steps that it is of"
    assert [process.loader_workers for process in job.ranks] == [3, 0]
    assert job.collection_seconds(skip=1) == pytest.approx(0.3), "of the slower rank of each step"


def accumulated(sizes: list[list[float]]) -> dict[str, Any]:
    """A step with a backward pass for each list of buckets."""
    segments = [["backward", 2.0 * n, 2.0 * n + 1.0] for n in range(len(sizes))]
    messages = [
        ["bucket", size, 2.0 * n + 0.5, 2.0 * n + 0.9]
        for n, own in enumerate(sizes)
        for size in own
    ]
    return a_step(segments=segments, messages=messages)


@pytest.mark.parametrize(
    ("sizes", "same"),
    [
        ([[5.0, 3.0]], 1),
        ([[5.0, 3.0], [3.0, 5.0], [5.0, 3.0]], 3),
        ([[], [], [5.0, 3.0]], 1),
        ([[5.0, 3.0], [7.0]], 1),
        ([], 1),
    ],
    ids=["one pass", "each synchronises", "no_sync", "two networks", "no backward"],
)
def test_backward_passes_that_send_the_same_gradients_are_counted(sizes, same):
    assert same_exchanges(accumulated(sizes)) == same


def test_nobody_stepped(tmp_path: Path):
    assert watched_job(read_processes(tmp_path)) is None


class TestLifetime:
    def test_processes_of_an_earlier_job_are_excluded_by_boot_time(self, tmp_path: Path):
        """The wall-clock time, 1.0 in every event, is not used: it may have been set in between."""
        for pid, moment in ((10, 99.0), (11, 101.0)):
            write(tmp_path, pid, 0, 1, [a_step()], every={"boot": "b", "moment": moment})
        began = Lifetime("b", moment=100.0, time=5.0)
        assert len(read_processes(tmp_path)) == 2
        assert len(read_processes(tmp_path, began)) == 1

    def test_between_machines_the_time_of_day_decides(self, tmp_path: Path):
        write(tmp_path, 10, 0, 1, [a_step()], every={"boot": "other", "moment": 1e9})
        assert read_processes(tmp_path, Lifetime("b", 100.0, time=2.0)) == []
        assert len(read_processes(tmp_path, Lifetime("b", 100.0, time=0.5))) == 1


class TestMissingRanks:
    def test_a_rank_of_this_node_that_never_stepped_fails_the_job(self, tmp_path: Path):
        write(tmp_path, 10, 0, 2, [a_step()], every={"local_world": 2})
        job = watched_job(read_processes(tmp_path))
        assert job is not None
        assert job.missing == "rank 1 took no step: found records of 1 of 2 ranks"

    def test_ranks_of_other_nodes_need_not_be_here(self, tmp_path: Path):
        write(tmp_path, 10, 0, 4, [a_step()], every={"local_world": 1})
        job = watched_job(read_processes(tmp_path))
        assert job is not None
        assert not job.missing
        assert "found records of only 1 of 4 ranks" in job.notes
        assert "rank 1, 2, 3" in watched_job(read_processes(tmp_path), all_nodes=True).missing


@pytest.mark.parametrize(
    "damage",
    [
        {"step_seconds": "fast"},
        {"step_seconds": -1.0},
        {"segments": [["input", 0.0]]},
        {"messages": {}},
        {"fetches": 1e400},
        {"samples": None},
    ],
)
def test_steps_that_are_none_are_left_out(tmp_path: Path, damage: dict[str, Any]):
    write(tmp_path, 10, 0, 1, [a_step(**damage)])
    assert watched_job(read_processes(tmp_path)) is None


def test_phases_are_the_vocabulary_of_steps():
    assert {span.phase for span in step_spans(a_step())} <= set(Phase)
