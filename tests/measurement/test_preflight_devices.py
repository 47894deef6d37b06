"""Faults of devices that hosts report, and what could not be checked."""

import pytest

from paceline.frameworks.runtime import host_devices
from paceline.measurement.preflight_devices import device_findings

GPU = {
    "name": "NVIDIA H100",
    "ecc.errors.uncorrected.volatile.total": "0",
    "clocks_throttle_reasons.hw_slowdown": "Not Active",
    "pcie.link.width.current": "16",
    "pcie.link.width.max": "16",
}
PORT = {"name": "mlx5_0/1", "state": "ACTIVE", "gbit": 400.0, "errors": {}}
HOST = {
    "gpus": [GPU] * 8,
    "ports": [PORT] * 8,
    "nvlinks_down": 0,
    "mtu": 4096.0,
    "link_mbit": 10_000.0,
    "gpudirect": True,
    "unread": [],
}
NAMES = ("a", "b", "c")
SENT = [1.1e9] * 3


def faults(*changed, sent=SENT):
    hosts = [*changed, *[HOST] * (3 - len(changed))]
    return [one for one in device_findings(NAMES, hosts, sent) if not one.works]


def test_good_hosts_have_no_fault():
    assert not faults()


@pytest.mark.parametrize(
    ("changes", "name", "words"),
    [
        ({"gpus": [{**GPU, "ecc.errors.uncorrected.volatile.total": "3"}] * 8}, "GPUs",
         "3 uncorrected ECC errors"),
        ({"gpus": [{**GPU, "clocks_throttle_reasons.hw_slowdown": "Active"}] * 8}, "GPUs",
         "slowed down"),
        ({"gpus": [{**GPU, "pcie.link.width.current": "4"}] * 8}, "GPUs", "4 of 16 PCIe lanes"),
        ({"gpus": [GPU] * 7}, "GPUs", "a: 7; most hosts: 8"),
        ({"nvlinks_down": 2}, "GPUs", "2 NVLinks inactive"),
        ({"ports": [{**PORT, "state": "DOWN"}] + [PORT] * 7}, "InfiniBand", "is DOWN"),
        ({"ports": [{**PORT, "errors": {"symbol_error": 5000.0}}] + [PORT] * 7}, "InfiniBand",
         "symbol_error 5000"),
        ({"ports": [{**PORT, "gbit": 200.0}] + [PORT] * 7}, "InfiniBand rates", "200 Gbit/s"),
        ({"mtu": 1500.0}, "MTU", "a: 1500; most hosts: 4096"),
        ({"gpudirect": False}, "GPUDirect", "not loaded on a"),
    ],
)  # fmt: skip
def test_each_fault_is_named_with_its_host(changes, name, words):
    (found,) = faults({**HOST, **changes})
    assert found.name == name and words in found.detail and found.remedy


def test_a_slow_sender_is_compared_with_its_line_rate():
    (found,) = faults(sent=[0.4e9, 1.1e9, 1.1e9])
    assert found.name == "line rate" and "a sends" in found.detail and "32 %" in found.detail


def test_what_could_not_be_checked_is_said():
    bare = {**HOST, "gpus": [], "ports": [], "nvlinks_down": None, "unread": ["NVLink"]}
    found = device_findings(NAMES, [bare] * 3, SENT)
    assert [one.detail for one in found if one.name == "not checked"] == ["NVLink on 3 hosts"]
    (damaged,) = device_findings(NAMES, [None, {"gpus": 3}, []], SENT)
    assert damaged.works and "not checked" in damaged.detail


def test_ports_are_read_from_sysfs(tmp_path, monkeypatch):
    port = tmp_path / "mlx5_0" / "ports" / "1"
    (port / "counters").mkdir(parents=True)
    (port / "state").write_text("4: ACTIVE\n")
    (port / "rate").write_text("100 Gb/sec (4X EDR)\n")
    (port / "counters" / "symbol_error").write_text("12\n")
    monkeypatch.setattr(host_devices, "INFINIBAND", str(tmp_path))
    unread = []
    (found,) = host_devices.ports(unread)
    errors = {"symbol_error": 12.0}
    assert found == {"name": "mlx5_0/1", "state": "ACTIVE", "gbit": 100.0, "errors": errors}
    assert not unread


@pytest.mark.process
def test_gpus_are_read_from_the_driver(tmp_path, monkeypatch):
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 'NVIDIA H100, 0, Not Active, 16, 16'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert host_devices.gpus([]) == [GPU]
    unread = []
    monkeypatch.setenv("PATH", "/nowhere")
    assert host_devices.gpus(unread) == [] and unread == ["GPUs (no nvidia-smi)"]
