"""Ranks over ssh, with a daemon of the test's own on loopback; what cannot be reached is named."""

import io
import json
import socket
import sys
import tarfile
import threading
import time

import psutil
import pytest

from launch.ssh_daemon import HOSTS, PROGRAM, running_daemon
from paceline.errors import EnvironmentUnusableError, InputError
from paceline.launch import LaunchRequest, LaunchSettings, launcher, remote_shell
from paceline.launch.file_transfer import unpack_ranks
from paceline.launch.ports import free_port
from paceline.launch.remote_shell import ssh_failure_cause
from paceline.testing.launcher_suite import CHECKS, LauncherBench, run_check
from paceline.testing.leftovers import check_nothing_left

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no sshd: script/slurm-up install")


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    with running_daemon(tmp_path_factory.mktemp("sshd")) as started:
        yield started


def over(daemon, hosts=HOSTS, **options):
    return launcher("ssh", LaunchSettings(hosts, {**daemon.options, **options}))


def reason(starter, directory, **options):
    command = (sys.executable, "-c", "pass")
    fields = {"timeout_seconds": 60.0, "nodes": 2, "peer_grace_seconds": 0.5, **options}
    ended = starter.launch(LaunchRequest(lambda rank: command, directory, **fields))
    assert ended.seconds < 60.0
    return ended.reason


@pytest.mark.parametrize("check", [*(c for c in CHECKS if c in ("nodes", "exit codes"))])
def test_ranks_over_ssh_keep_the_contract(check, daemon, tmp_path):
    result = run_check(check, CHECKS[check], LauncherBench(over(daemon), tmp_path))
    assert result.passed, result.message


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS)
def test_ranks_over_ssh_keep_the_whole_contract(check, daemon, tmp_path):
    result = run_check(check, CHECKS[check], LauncherBench(over(daemon), tmp_path))
    assert result.passed, result.message


WHERE = """import json, os, sys
import helper
with open(sys.argv[1], "w") as file:
    json.dump({"script": __file__, "helper": helper.__file__, "rank": os.environ["RANK"]}, file)
"""


def copied(daemon, tmp_path, script=WHERE):
    """A launch whose files are all sent: its script, the module beside it, what it writes."""
    there, here, program = (tmp_path / name for name in ("there", "here", "program"))
    for folder in (there, here, program):
        folder.mkdir()
    (program / "main.py").write_text(script)
    (program / "helper.py").write_text("")
    starter = over(daemon, copy="launch", directory=str(there))
    starter.validate(2, 1)
    request = LaunchRequest(
        lambda rank: (sys.executable, str(program / "main.py"), str(here / f"rank-{rank}.events")),
        here,
        60.0,
        nodes=2,
        variables=lambda rank: {"PYTHONPATH": str(program)},
        peer_grace_seconds=1.0,
    )
    return starter.launch(request), here, there


def test_hosts_that_share_no_disk_get_the_launch_and_give_its_results_back(daemon, tmp_path):
    ended, here, there = copied(daemon, tmp_path)
    assert not ended.reason
    for rank in range(2):
        told = json.loads((here / f"rank-{rank}.events").read_text())
        assert told["rank"] == str(rank)
        assert told["script"].startswith(f"{there}/paceline-")
        assert told["helper"].startswith(f"{there}/paceline-")
        assert ended.ranks[rank].host == HOSTS[rank]
    assert list(there.iterdir()) == []


def test_failed_rank_without_a_shared_disk_is_reported_with_its_log(daemon, tmp_path):
    dies = "import os\nprint('oh', flush=True)\nos.kill(os.getpid(), 9)\n"
    ended, here, there = copied(daemon, tmp_path, dies)
    assert "was killed by SIGKILL" in ended.reason
    assert "oh" in (here / f"rank-{ended.first_failed}.log").read_text()
    assert list(there.iterdir()) == []


def test_a_host_without_room_for_the_launch_is_named(daemon, tmp_path):
    (tmp_path / "file").touch()
    starter = over(daemon, copy="launch", directory=str(tmp_path / "file"))
    with pytest.raises(EnvironmentUnusableError, match=r"host 127\.0\.0\.1: .*file"):
        reason(starter, tmp_path)
    with pytest.raises(InputError, match="invalid value 'all' of copy"):
        over(daemon, copy="all").validate(1, 1)


def test_only_rank_files_are_extracted_from_hosts(tmp_path):
    packed, own = io.BytesIO(), tmp_path / "own"
    own.mkdir()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name in ("rank-0.log", "../rank-1.log", "job.json", "rank-2.log/../../x"):
            tar.addfile(tarfile.TarInfo(name))
        link = tarfile.TarInfo("rank-3.log")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    packed.seek(0)
    unpack_ranks(packed, own)
    assert [path.name for path in tmp_path.rglob("*")] == ["own", "rank-0.log"]


def test_a_host_that_nobody_knows_is_named(daemon, tmp_path):
    told = reason(over(daemon, ("127.0.0.1", "no-such-host.invalid")), tmp_path)
    assert told.startswith("host no-such-host.invalid: its name does not resolve")


def test_missing_ssh_key_is_reported(daemon, tmp_path):
    known = f"UserKnownHostsFile {daemon.directory}/known\n"
    (tmp_path / "client").write_text(f"IdentityFile /none\nIdentitiesOnly yes\n{known}")
    told = reason(over(daemon, ssh_config=str(tmp_path / "client")), tmp_path)
    assert told.startswith("host 127.0.0.")
    assert "it accepts none of the keys (publickey)" in told


def test_unknown_host_key_is_reported(daemon, tmp_path):
    client = (daemon.directory / "client").read_text().replace("/known", "/unknown")
    (tmp_path / "client").write_text(client)
    told = reason(over(daemon, ssh_config=str(tmp_path / "client")), tmp_path)
    assert "host 127.0.0.1: its host key is unknown" in told


def test_a_host_without_a_daemon_is_named_with_its_port(daemon, tmp_path):
    port = free_port()
    told = reason(over(daemon, ssh_port=str(port)), tmp_path)
    assert told.startswith(f"host 127.0.0.1: connection refused at port {port}")


def test_a_host_that_does_not_answer_is_named_within_the_time(daemon, tmp_path, monkeypatch):
    monkeypatch.setattr(remote_shell, "CONNECT_SECONDS", 2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = str(silent.getsockname()[1])
        told = reason(over(daemon, HOSTS[:1] * 2, ssh_port=port), tmp_path)
    assert told.startswith("host 127.0.0.1: it does not answer")


def test_a_host_that_dies_in_mid_launch_is_named(tmp_path_factory, tmp_path):
    """Its sshd is killed with every session; the ranks end since nobody listens any more."""

    def kill(daemon):
        while len(list(tmp_path.glob("rank-*.host.json"))) < 2:
            time.sleep(0.1)
        for process in psutil.Process(daemon.process.pid).children():
            process.kill()

    command = (sys.executable, "-c", "import time; time.sleep(600)")
    with running_daemon(tmp_path_factory.mktemp("sshd")) as daemon:
        thread = threading.Thread(target=kill, args=(daemon,), daemon=True)
        thread.start()
        request = LaunchRequest(lambda rank: command, tmp_path, 60.0, 2, peer_grace_seconds=1.0)
        ended = over(daemon).launch(request)
        thread.join()
    assert ended.reason.startswith("host 127.0.0.")
    assert "the connection broke" in ended.reason
    check_nothing_left(tmp_path)


def test_missing_python_of_a_host_is_reported(daemon, tmp_path):
    told = reason(over(daemon, python="/opt/none/python3"), tmp_path)
    assert told.startswith("host 127.0.0.1: /opt/none/python3 does not exist there")


@pytest.mark.parametrize(
    ("log", "cause"),
    [
        ("python3: can't open file '/d/agent': [Errno 2]", "host h: it does not see the directory"),
        ("Timeout, server b not responding.", "host b: it stopped answering"),
        ("ssh: connect to host b port 22: No route to host\r\n", "host b: No route to host"),
        ("something else", ""),
    ],
)
def test_ssh_errors_are_parsed(log, cause):
    assert ssh_failure_cause(log, "h").startswith(cause)
    assert bool(cause) == bool(ssh_failure_cause(log, "h"))
