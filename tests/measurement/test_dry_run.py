"""A study that is written, run by its own scripts wherever it was moved to, and collected."""

import json
import shutil
import subprocess

import pytest
from measurement import quick

from paceline.errors import InputError
from paceline.launch import launch_files as documents
from paceline.measurement.dry_run import collect_study, prepare_study
from paceline.measurement.study_runner import Design
from paceline.store import Status, Store

pytestmark = pytest.mark.usefixtures("quick_framework")


@pytest.fixture
def moved(tmp_path):
    """A prepared study of three launches, moved elsewhere."""
    jobs = [quick.job(world_size=2, nodes=2), quick.job(world_size=2)]
    design = Design.randomised(jobs, [2, 1], 1)
    scripts, count = prepare_study(design, "far", tmp_path / "here", 60.0)
    assert ([path.name for path in scripts], count) == (["launches.sh"], 3)
    shutil.move(tmp_path / "here", tmp_path / "there")
    script = tmp_path / "there" / "launches.sh"
    script.write_text(script.read_text().replace(str(tmp_path / "here"), str(tmp_path / "there")))
    return tmp_path / "there"


def run(directory):
    subprocess.run([directory / "launches.sh"], check=True, timeout=120)


def test_collected_launches_are_recorded_once(moved, tmp_path):
    run(moved)
    with Store(tmp_path / "s.db") as store:
        study, recorded, waiting = collect_study(moved, store)
        assert (study, len(recorded), waiting) == ("far", 3, 0)
        assert {launch.status for launch in recorded} == {Status.FINISHED}
        assert sorted(launch.nodes for launch in recorded) == [1, 2, 2]
        assert collect_study(moved, store) == ("far", [], 0)
        assert len(store.launches("far")) == 3


def test_launches_without_results_stay_pending(moved, tmp_path):
    with Store(tmp_path / "s.db") as store:
        assert collect_study(moved, store) == ("far", [], 3)


def test_results_that_are_missing_or_cut_off_fail_their_launch(moved, tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "COLLECTING_SECONDS", 0.1)
    run(moved)
    (moved / "launch-0000" / "rank-1.exit").unlink()
    (moved / "launch-0000" / "rank-1.events.jsonl").unlink()
    events = moved / "launch-0001" / "rank-0.events.jsonl"
    events.write_bytes(events.read_bytes()[:-40])
    with Store(tmp_path / "s.db") as store:
        _, recorded, _ = collect_study(moved, store)
    reasons = [launch.outcome.reason for launch in recorded]
    assert reasons[0].startswith("rank 1: its exit was not recorded")
    assert "rank-0.events.jsonl is truncated" in reasons[1]
    assert reasons[2] == ""


@pytest.mark.parametrize("text", [None, "", "[]", '{"schema": "other"}', '{"study": "x"}'])
def test_directory_without_a_prepared_study_is_rejected(text, tmp_path):
    if text is not None:
        (tmp_path / "study.json").write_text(text)
    with Store(tmp_path / "s.db") as store, pytest.raises(InputError, match="not a prepared study"):
        collect_study(tmp_path, store)


def test_a_directory_that_has_something_is_not_written_to(tmp_path):
    (tmp_path / "mine").write_text("precious")
    with pytest.raises(InputError, match="is not empty"):
        prepare_study(Design.randomised([quick.job()], 1, 1), "s", tmp_path, 60.0)


def test_a_study_of_that_name_that_was_measured_is_not_mixed_with(moved, tmp_path):
    document = json.loads((moved / "study.json").read_text())
    document["study"] = "taken"
    (moved / "study.json").write_text(json.dumps(document))
    run(moved)
    with Store(tmp_path / "s.db") as store:
        other = Design.randomised([quick.job()], 1, 1)
        store.save_design("taken", other.to_json())
        with pytest.raises(InputError, match="different study named 'taken'"):
            collect_study(moved, store)
