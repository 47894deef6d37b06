"""torchrun on each host, by order or by rendezvous."""

import sys

import pytest

from paceline.errors import InputError
from paceline.launch import LaunchRequest, LaunchSettings, launcher
from paceline.testing.launcher_suite import CHECKS, LauncherBench, run_check

HERE = ("localhost", "localhost")


def torchrun(hosts=HERE, **options):
    return launcher("torchrun", LaunchSettings(hosts, options))


def request_in(directory, program=sys.executable):
    return LaunchRequest(lambda rank: (program, "-c", "pass"), directory, 60.0, 2, 4)


def test_nodes_have_the_order_of_the_hosts(tmp_path):
    commands = torchrun(("localhost", "far.invalid"), user="me").prepare(request_in(tmp_path))
    assert [" ".join(one).count("--nnodes 2 --nproc-per-node 4") for one in commands] == [1, 1]
    assert f"--node-rank 1 --master-addr {HERE[0]}" in commands[1][-1]
    assert commands[1][0] == "ssh"
    assert commands[1][commands[1].index("-l") + 1] == "me"
    assert commands[0][0] == sys.executable


def test_a_rendezvous_is_at_the_first_host(tmp_path):
    commands = torchrun(rendezvous="c10d").prepare(request_in(tmp_path))
    ends = {one[one.index("--rdzv-endpoint") + 1] for one in commands}
    marks = {one[one.index("--rdzv-id") + 1] for one in commands}
    assert len(ends) == len(marks) == 1
    assert "--node-rank" not in commands[0]


def test_a_rendezvous_that_torchrun_does_not_have_is_refused():
    with pytest.raises(InputError, match="unknown rendezvous 'party'"):
        torchrun(rendezvous="party").validate(2, 1)


def test_an_interpreter_without_pytorch_is_named(tmp_path):
    log = "/opt/py: Error while finding module specification (No module named 'torch')"
    told = torchrun().failure_cause(request_in(tmp_path, "/opt/py"), 0, log)
    assert told.startswith("torchrun needs PyTorch, which /opt/py does not have")


@pytest.mark.slow
@pytest.mark.parametrize("rendezvous", ["static", "c10d"])
@pytest.mark.parametrize("check", CHECKS)
def test_ranks_of_torchrun_keep_the_contract(check, rendezvous, tmp_path):
    bench = LauncherBench(torchrun(rendezvous=rendezvous), tmp_path)
    result = run_check(check, CHECKS[check], bench)
    assert result.passed, result.message
