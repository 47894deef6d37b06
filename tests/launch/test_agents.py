"""Ranks of several nodes: the contract, hosts and clocks in the record, files checked."""

import json
import os
import sys

import pytest

from launch.here import HereLauncher
from paceline.launch import LaunchRequest, LaunchSettings
from paceline.launch import launch_files as launch_documents
from paceline.launch.launch_files import rank_status
from paceline.testing.launcher_suite import CHECKS, LauncherBench, run_check


def request_of(directory, script, **options):
    command = (sys.executable, "-c", script)
    fields = {"timeout_seconds": 60.0, "nodes": 2, "processes": 1, **options}
    return LaunchRequest(lambda rank: command, directory, **fields)


@pytest.mark.parametrize("check", CHECKS)
def test_a_launcher_of_hosts_keeps_the_contract(check, tmp_path):
    result = run_check(check, CHECKS[check], LauncherBench(HereLauncher(), tmp_path))
    assert result.passed, result.message


def test_ranks_record_their_host_and_clock_offset(tmp_path):
    exited = HereLauncher().launch(request_of(tmp_path, "pass"))
    assert not exited.reason
    assert [rank.host for rank in exited.ranks] == ["one", "two"]
    clock = exited.ranks[1]
    assert abs(clock.clock_offset_seconds) <= clock.clock_error_seconds + 1e-6
    assert clock.clock_error_seconds > 0


def test_nodes_on_one_machine_do_not_share_cores_while_there_are_enough(tmp_path):
    script = "import os; print(sorted(os.sched_getaffinity(0)))"
    exited = HereLauncher().launch(request_of(tmp_path, script, cores_per_rank=1))
    cores = [json.loads(rank.log.read_text()) for rank in exited.ranks]
    enough = len(os.sched_getaffinity(0)) >= 2
    assert [len(one) for one in cores] == [1, 1]
    assert (cores[0] != cores[1]) is enough


def test_truncated_results_are_reported_with_their_host(tmp_path, monkeypatch):
    monkeypatch.setattr(launch_documents, "COLLECTING_SECONDS", 0.1)

    class Cutting(HereLauncher):
        def _collected(self, request, exited, logs):
            (request.directory / "rank-1.out").write_text("half")
            return super()._collected(request, exited, logs)

    script = (
        "import os, pathlib; rank = os.environ['RANK']\n"
        f"pathlib.Path({str(tmp_path)!r}, f'rank-{{rank}}.out').write_text('whole and long')"
    )
    exited = Cutting().launch(request_of(tmp_path, script))
    assert exited.reason == "rank 1 on two: its file rank-1.out is truncated: 4 of 14 bytes"
    assert exited.first_failed == 1


def test_host_without_an_agent_is_named_by_rank_0(tmp_path, monkeypatch):
    monkeypatch.setattr(launch_documents, "PATIENCE_SECONDS", 1.0)

    class Deaf(HereLauncher):
        def on_host(self, host, command):
            return list(command) if host == "one" else ["sh", "-c", "sleep 600"]

    exited = Deaf().launch(request_of(tmp_path, "pass", peer_grace_seconds=0.5))
    assert "host one: rank 1 did not reach 127.0.0.1:" in exited.reason
    assert rank_status(tmp_path, 0).code == 114


DEAF = """
import socket, time
server = socket.create_server(("127.0.0.1", 0), backlog=0)
waiting = [socket.socket() for _ in range(4)]
for one in waiting:
    one.setblocking(False)
    one.connect_ex(server.getsockname())
print(server.getsockname()[1], flush=True)
time.sleep(600)
"""
"""Connects to a listener whose queue is full, which drops what comes."""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's tables")
def test_timed_out_ranks_report_unanswered_peers(tmp_path):
    exited = HereLauncher().launch(request_of(tmp_path, DEAF, timeout_seconds=15.0))
    assert exited.reason.startswith("timed out after 15 s")
    for rank, host in enumerate(("one", "two")):
        port = (tmp_path / f"rank-{rank}.log").read_text().strip()
        assert set(exited.unanswered[host]) == {f"127.0.0.1:{port}"}


def test_first_failed_rank_is_not_one_that_was_ended(tmp_path):
    """The clock of a rank that was ended may be behind."""

    class Behind(HereLauncher):
        def _collected(self, request, exited, logs):
            path = request.directory / "rank-1.host.json"
            told = json.loads(path.read_text())
            path.write_text(json.dumps({**told, "clock_offset_seconds": -100.0}))
            return super()._collected(request, exited, logs)

    script = "import os, time; os._exit(7) if os.environ['RANK'] == '0' else time.sleep(600)"
    exited = Behind().launch(request_of(tmp_path, script, peer_grace_seconds=0.5))
    assert exited.first_failed == 0
    assert exited.reason.startswith("rank 0 ended with code 7")


def test_invalid_agent_messages_are_ignored(tmp_path):
    for text in (
        "",
        "7",
        "[]",
        '{"code": "x"}',
        '{"code": 0, "reason": 1, "time": 2, "files": []}',
    ):
        (tmp_path / "rank-0.exit").write_text(text)
        assert rank_status(tmp_path, 0) is None


def test_hosts_and_options_are_checked_when_they_are_chosen():
    chosen = HereLauncher().configured(LaunchSettings(("a", "b", "c")))
    assert [host.name for host in chosen.hosts()] == ["a", "b", "c"]
    assert [host.name for host in HereLauncher().hosts()] == ["one", "two"]
    with pytest.raises(Exception, match="no option of the launcher 'here' named 'color'"):
        HereLauncher().configured(LaunchSettings((), {"color": "red"}))
