import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lab.conftest import needs_lab
from paceline.errors import EnvironmentUnusableError, InputError
from paceline.lab import LabSettings, known_labs, lab_down, lab_named, lab_up
from paceline.lab.groups import speed_controller
from paceline.lab.lab_cluster import NAMESPACES
from paceline.lab.lab_record import lab_lock, record_path

SERVER = """
import socket
with socket.create_server(("0.0.0.0", 5000)) as server:
    print("listening", flush=True)
    peer, _ = server.accept()
    with peer:
        while data := peer.recv(1 << 20):
            peer.sendall(str(len(data)).encode() + b" ")
"""
CLIENT = """
import socket, time
with socket.create_connection(("198.18.0.1", 5000), timeout=20) as server:
    begun = time.perf_counter()
    server.sendall(b"x" * 10)
    assert server.recv(100) == b"10 "
    print(time.perf_counter() - begun)
"""


def on(host, script):
    return subprocess.Popen(
        [*host.enter(), sys.executable, "-c", script], stdout=subprocess.PIPE, text=True
    )


def one_exchange(lab):
    """Seconds of a small exchange of two hosts."""
    server = on(lab.hosts[0], SERVER)
    assert server.stdout.readline() == "listening\n"
    seconds, _ = on(lab.hosts[1], CLIENT).communicate(timeout=30)
    server.communicate(timeout=30)
    return float(seconds)


def leftovers(name):
    """Namespaces and groups of a lab that are still there."""
    found = [str(path) for path in NAMESPACES.glob(f"paceline-{name}-*")]
    root = speed_controller()
    return found + ([str(path) for path in root.glob(f"paceline-lab/{name}-*")] if root else [])


@needs_lab
def test_hosts_reach_each_other_and_nothing_else(lab_name):
    lab = lab_up(LabSettings(2, 12.5e6), lab_name)
    assert lab.faults() == ()
    assert lab_named(lab_name).settings == lab.settings
    assert [one.name for one in known_labs()] == [lab_name]
    assert one_exchange(lab) > 0
    routes = subprocess.check_output([*lab.hosts[0].enter(), "ip", "route"], text=True)
    assert "default" not in routes and "congctl cubic" in routes
    assert lab_down(lab_name) and leftovers(lab_name) == [] and not lab_down(lab_name)


@needs_lab
def test_frames_are_delayed(lab_name):
    lab = lab_up(LabSettings(2, 125e6, delay=0.02), lab_name)
    assert lab.record.delay_by in ("wire", "netem")
    assert one_exchange(lab) >= 0.04


@needs_lab
def test_the_machines_own_interfaces_are_left_alone(lab_name):
    def own():
        return subprocess.check_output(["ip", "-o", "link"]), subprocess.check_output(
            ["tc", "qdisc"]
        )

    before = own()
    lab_up(LabSettings(2, 12.5e6, delay=0.001), lab_name)
    assert own() == before


@needs_lab
def test_next_lab_removes_the_rest_of_a_killed_one(lab_name):
    """The maker is killed while its lab has hosts, a process on one and one that delays frames."""
    script = (
        "import subprocess, sys, time\n"
        "from paceline.lab import *\n"
        f"lab = lab_up(LabSettings(2, 12.5e6, delay=0.001, speed={speed()}), '{lab_name}')\n"
        "command = [*lab.hosts[0].enter(), 'sleep', '600']\n"
        "print(subprocess.Popen(command, start_new_session=True).pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    for again in (lambda: lab_up(LabSettings(1), lab_name), lambda: None):
        maker = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
        inside = int(maker.stdout.readline())
        maker.send_signal(signal.SIGKILL)
        maker.wait()
        assert leftovers(lab_name) and Path(f"/proc/{inside}").exists()
        again()
        lab_down(lab_name)
        assert leftovers(lab_name) == []
        wait_until_gone(inside)
        assert not record_path(lab_name).exists()


def speed():
    return "0.5" if speed_controller() else "None"


def wait_until_gone(process):
    for _ in range(200):
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return
        if state == "Z":  # nobody waits for an orphan here but the first process
            return
        time.sleep(0.05)
    raise AssertionError(f"process {process} still runs")


@needs_lab
def test_lab_killed_during_creation_is_removed(lab_name):
    """The record is written before anything is created."""
    script = (
        "import os\nfrom paceline.lab import lab_cluster\nfrom paceline.lab import *\n"
        "lab_cluster.shape = lambda *_: os.kill(os.getpid(), 9)\n"
        f"lab_up(LabSettings(2, 12.5e6), '{lab_name}')\n"
    )
    subprocess.run([sys.executable, "-c", script], check=False)
    assert leftovers(lab_name)
    assert "interrupted" in lab_named(lab_name).faults()[0]
    with pytest.raises(InputError, match="is incomplete"):
        lab_named(lab_name).check()
    assert lab_down(lab_name) and leftovers(lab_name) == []


@needs_lab
@pytest.mark.skipif(speed_controller() is None, reason="no control group limits the processor")
def test_a_slow_host_has_its_share_of_a_core(lab_name):
    lab = lab_up(LabSettings(1, speed=0.3), lab_name)
    busy = (
        "import time\nend = time.monotonic() + 1.0\nbegun = time.process_time()\n"
        "while time.monotonic() < end: pass\nprint(time.process_time() - begun)"
    )
    used, _ = on(lab.hosts[0], busy).communicate(timeout=60)
    assert float(used) < 0.45


@needs_lab
def test_a_lab_in_use_is_not_ended(lab_name):
    lab_up(LabSettings(1), lab_name)
    used = pytest.raises(InputError, match=f"in use by process {os.getpid()}")
    with lab_lock(lab_name, exclusive=False), used:
        lab_down(lab_name)
    assert lab_down(lab_name)


@needs_lab
def test_lab_without_one_of_its_hosts_is_incomplete(lab_name):
    lab = lab_up(LabSettings(2), lab_name)
    subprocess.run(["ip", "netns", "del", lab.record.hosts[1]], check=True)
    assert lab.record.hosts[1] in lab.faults()[0]


@needs_lab
def test_invalid_record_is_an_error(lab_name):
    lab_up(LabSettings(1), lab_name)
    text = record_path(lab_name).read_text()
    record_path(lab_name).write_text("{}")
    with pytest.raises(InputError, match="not a valid lab record"):
        lab_down(lab_name)
    record_path(lab_name).write_text(text)


def test_missing_privileges_error_has_a_remedy(monkeypatch, tmp_path):
    monkeypatch.setattr("paceline.lab.machine._may_create_namespaces", lambda: False)
    with pytest.raises(EnvironmentUnusableError) as caught:
        lab_up(LabSettings(1))
    assert "root" in caught.value.hint or "iproute2" in caught.value.hint


def test_no_lab_is_an_error_with_the_command_that_makes_one(monkeypatch, tmp_path):
    monkeypatch.setenv("PACELINE_LAB_STATE", str(tmp_path))
    with pytest.raises(InputError) as caught:
        lab_named("other")
    assert "paceline lab up --hosts 4 --name other" in caught.value.hint
