"""A job that this machine has no room for is refused before anything starts."""

import pytest

from paceline.errors import InputError
from paceline.launch import LaunchHost, LocalLauncher
from paceline.measurement import failures
from paceline.measurement import resource_check as room
from paceline.study.study_settings import StudySettings


class TwoCores(LocalLauncher):
    def hosts(self):
        return (LaunchHost("here", 2),)


def jobs(monkeypatch, **settings):
    monkeypatch.setattr("paceline.study.study_jobs.launcher_for", lambda *_: TwoCores())
    return list(StudySettings.of(**{"model": "fcn5", "batch": 2, **settings}).jobs())


@pytest.mark.parametrize("settings", [{"processes": 3}, {"threads": 3}, {"processes": "1x1000000"}])
def test_oversubscription_must_be_requested(monkeypatch, settings):
    with pytest.raises(InputError, match="but the machine has 2") as refused:
        jobs(monkeypatch, **settings)
    assert "--oversubscribe" in refused.value.hint


def test_oversubscribed_processes_still_need_memory(monkeypatch):
    assert len(jobs(monkeypatch, processes=3, oversubscribe=True)) == 1
    with pytest.raises(InputError, match="of memory, but"):
        jobs(monkeypatch, processes=10**6, oversubscribe=True)


def test_a_network_that_cannot_fit_is_refused(monkeypatch):
    with pytest.raises(InputError, match=r"gpt3_175b on 1 process needs at least 2\.\d+ TB"):
        jobs(monkeypatch, model="gpt3_175b")


def test_a_container_s_limit_counts(monkeypatch, tmp_path):
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(room, "CGROUP_LIMITS", (limit,))
    limit.write_text("max\n")
    whole = room.memory_bytes()
    limit.write_text("1000000\n")
    assert room.memory_bytes() == 1e6 < whole


def test_threads_are_a_factor(monkeypatch):
    assert [job.threads for job in jobs(monkeypatch, threads="1,2")] == [1, 2]
    assert [job.threads for job in jobs(monkeypatch, threads=[2, 1])] == [2, 1]
    assert [job.threads for job in jobs(monkeypatch, threads=2)] == [2]
    for wrong in (0, "none", 1.5, []):
        with pytest.raises(InputError, match="threads"):
            jobs(monkeypatch, threads=wrong)


def test_out_of_memory_kill_is_reported(monkeypatch, tmp_path):
    counter = tmp_path / "vmstat"
    counter.write_text("pgfault 7\noom_kill 3\n")
    monkeypatch.setattr(failures, "OOM_COUNTERS", (counter,))
    before = failures.memory_kills()
    killed = "rank 0 was killed by SIGKILL"
    assert failures.with_memory_kill(killed, before) == killed
    counter.write_text("pgfault 7\noom_kill 4\n")
    assert failures.with_memory_kill(killed, before).startswith("out of memory")
    assert failures.with_memory_kill("rank 0 ended with code 1", before).startswith("rank 0")
