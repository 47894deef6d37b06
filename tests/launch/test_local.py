import os
import signal
import socket
import sys
import time

import psutil
import pytest

from paceline.errors import InputError
from paceline.launch import LaunchRequest, LaunchSettings, LocalLauncher, launcher

PYTHON = [sys.executable, "-c"]


def run(script, tmp_path, world=2, timeout=20.0, **options):
    command = [*PYTHON, script]
    request = LaunchRequest(lambda rank: command, tmp_path, timeout, processes=world, **options)
    return LocalLauncher().launch(request)


def test_ranks_have_their_environment_and_log(tmp_path):
    ended = run("import os; print(os.environ['RANK'], os.environ['WORLD_SIZE'])", tmp_path)
    assert ended.reason == ""
    assert [rank.log.read_text().split() for rank in ended.ranks] == [["0", "2"], ["1", "2"]]


def test_a_crash_is_named_with_its_rank_and_code(tmp_path):
    ended = run("import os, sys; sys.exit(3 if os.environ['RANK'] == '1' else 0)", tmp_path)
    assert ended.reason == "rank 1 ended with code 3"


def test_a_kill_is_named_with_its_signal(tmp_path):
    ended = run("import os; os.kill(os.getpid(), 9)", tmp_path, world=1)
    assert ended.reason == "rank 0 was killed by SIGKILL"


def test_a_hang_is_ended_with_all_its_children(tmp_path):
    """Each rank ignores SIGTERM and has a child; after the timeout neither is left."""
    script = (
        "import os, signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "print(os.getpid(), child.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    ended = run(script, tmp_path, timeout=2.0)
    assert ended.reason.startswith("timed out after 2 s: rank 0, 1 still ran")
    for rank in ended.ranks:
        for pid in map(int, rank.log.read_text().split()):
            assert not _lives(pid)


def _lives(pid):
    for _ in range(100):
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return False
        time.sleep(0.02)
    return True


def test_a_rank_that_outlives_a_failed_peer_is_ended(tmp_path):
    script = "import os, time; os._exit(7) if os.environ['RANK'] == '0' else time.sleep(60)"
    begun = time.monotonic()
    ended = run(script, tmp_path, peer_grace_seconds=0.5)
    assert ended.reason == "rank 0 ended with code 7"
    assert ended.ranks[1].code == -signal.SIGTERM
    assert time.monotonic() - begun < 15


def test_a_command_that_cannot_be_run_is_refused(tmp_path):
    request = LaunchRequest(lambda rank: ["no-such-program"], tmp_path, 5.0)
    with pytest.raises(InputError, match="cannot run 'no-such-program'"):
        LocalLauncher().launch(request)


def test_a_port_that_is_taken_is_refused_before_anything_starts(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(InputError, match=f"cannot use port {taken.getsockname()[1]}"):
            run("print('started')", tmp_path, port=taken.getsockname()[1])
    assert not list(tmp_path.iterdir())


def affinities(ended):
    return [set(rank.log.read_text().split()) for rank in ended.ranks]


AFFINITY = "import os; print(*os.sched_getaffinity(0))"


def test_ranks_share_the_cores_without_overlap(tmp_path):
    if not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two cores that can be pinned to")
    first, second = affinities(run(AFFINITY, tmp_path))
    assert first
    assert first.isdisjoint(second)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux pins")
@pytest.mark.parametrize("world", [1, 2, 3])
def test_a_rank_has_exactly_its_cores_before_its_first_instruction(tmp_path, world):
    """Also alone on a machine of many cores, and where ranks are more than cores."""
    for cores in affinities(run(AFFINITY, tmp_path, world=world, cores_per_rank=1)):
        assert len(cores) == 1


def test_the_timeout_counts_while_ranks_start(tmp_path):
    ended = run("print('started')", tmp_path, world=3, timeout=0.0)
    assert ended.reason.startswith("timed out after 0 s: ")
    assert "of 3 ranks were started" in ended.reason


@pytest.mark.parametrize("host", ["a..b", "a" * 64, "9" * 5000, "nan", "1e400GB", "-x", "a\nb"])
def test_hosts_that_are_not_this_machine_are_one_error(host):
    with pytest.raises(InputError, match=r"is not this machine|invalid host name|control"):
        launcher("local", LaunchSettings((host,)))
