"""Slow, silent and dead hosts in a lab: the message names the host and the cause."""

import subprocess
import sys
import threading
import time

import pytest

from lab.conftest import needs_lab
from paceline.errors import PacelineError
from paceline.lab import LabSettings, lab_up
from paceline.lab.link_shaping import shape
from paceline.launch import LaunchRequest, LaunchSettings, launcher
from paceline.measurement import preflight
from paceline.measurement.preflight import examine_hosts
from paceline.store import Store

pytestmark = [needs_lab, pytest.mark.slow]
LINK = 12.5e6


@pytest.fixture
def lab(lab_name):
    return lab_up(LabSettings(3, LINK), lab_name)


def looked_at(lab, tmp_path):
    starter = launcher("lab", LaunchSettings(options={"name": lab.record.name}))
    with Store(tmp_path / "store.db") as store:
        return examine_hosts(store, starter, 3)


def faults(found):
    return "; ".join(finding.detail for finding in found.findings if not finding.works)


def test_a_host_that_is_slower_than_the_others_is_named(lab, tmp_path):
    shape(lab.record.hosts[2], "eth0", LINK / 20)
    assert lab.hosts[2].address in faults(looked_at(lab, tmp_path))


def drop(lab, sender, receiver):
    """Drop all packets from one host to another."""
    command = ("ip", "-n", lab.record.hosts[sender], "neigh", "replace")
    to = (lab.hosts[receiver].address, "lladdr", "02:00:00:00:00:99", "dev", "eth0")
    subprocess.run([*command, *to, "nud", "permanent"], check=True)


def test_two_hosts_whose_traffic_is_dropped_are_named(lab, tmp_path, monkeypatch):
    monkeypatch.setattr(preflight, "PATIENCE_SECONDS", 3.0)
    drop(lab, 2, 1)
    told = faults(looked_at(lab, tmp_path))
    assert f"{lab.hosts[2].address} cannot reach {lab.hosts[1].address}" in told


def test_a_host_whose_traffic_to_rank_0_is_dropped_is_named_in_time(lab, tmp_path, monkeypatch):
    monkeypatch.setattr(preflight, "PATIENCE_SECONDS", 3.0)
    drop(lab, 1, 0)
    begun = time.monotonic()
    try:
        told = faults(looked_at(lab, tmp_path))
    except PacelineError as error:
        told = error.message
    assert lab.hosts[1].address in told
    assert time.monotonic() - begun < 120.0


TALKS = """
import os, pathlib, socket, time
place = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if os.environ["RANK"] == "0":
    peer, _ = socket.create_server(place).accept()
    time.sleep(600)
while True:
    try:
        peer = socket.create_connection(place)
        break
    except ConnectionRefusedError:
        time.sleep(0.1)
pathlib.Path("connected").touch()
while True:
    peer.sendall(b"x")
    time.sleep(0.1)
"""
"""Rank 1 connects to rank 0 and keeps talking to it."""


@pytest.mark.parametrize("moment", ["before", "after"])
def test_dropped_traffic_is_reported_with_the_host(moment, lab, tmp_path):
    """Before ranks have met, and when they have."""

    def drop_later():
        while not (tmp_path / "connected").exists():
            time.sleep(0.05)
        drop(lab, 1, 0)

    if moment == "before":
        drop(lab, 1, 0)
    else:
        threading.Thread(target=drop_later, daemon=True).start()
    starter = launcher("lab", LaunchSettings(options={"name": lab.record.name}))
    command = (sys.executable, "-c", TALKS)
    ended = starter.launch(LaunchRequest(lambda rank: command, tmp_path, 12.0, nodes=2))
    assert ended.reason.startswith("timed out")
    assert list(ended.unanswered) == [lab.hosts[1].address]
    (peer,) = ended.unanswered[lab.hosts[1].address]
    assert peer.startswith(f"{lab.hosts[0].address}:")


def test_a_host_that_dies_in_mid_launch_is_named(lab, tmp_path):
    def kill():
        while not (tmp_path / "up-1").exists():
            time.sleep(0.1)
        inside = subprocess.check_output(["ip", "netns", "pids", lab.record.hosts[1]])
        for process in inside.split():
            subprocess.run(["kill", "-9", process.decode()], check=False)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    script = f"import os, time; open('{tmp_path}/up-' + os.environ['RANK'], 'w'); time.sleep(600)"
    command = (sys.executable, "-c", script)
    starter = launcher("lab", LaunchSettings(options={"name": lab.record.name}))
    request = LaunchRequest(lambda rank: command, tmp_path, 60.0, nodes=3, peer_grace_seconds=1.0)
    ended = starter.launch(request)
    thread.join()
    assert ended.first_failed == 1
    assert ended.ranks[1].host == lab.hosts[1].address
    assert "SIGKILL" in ended.reason and ended.seconds < 60.0
