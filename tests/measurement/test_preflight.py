import pytest

from lab.conftest import lab_name, needs_lab  # noqa: F401 (a fixture)
from paceline.errors import PacelineError
from paceline.lab import LabSettings, lab_up
from paceline.launch import LaunchSettings, launcher
from paceline.measurement.preflight import (
    HostLink,
    _clocks,
    _interface,
    _names,
    _reached,
    _speeds,
    examine_hosts,
)
from paceline.measurement.probe.link_probe import probe_links
from paceline.store import Store

HOSTS = ("a", "b", "c")


def host(address, interface="eth0", names=None, **variables):
    told = names or [
        {"name": n, "address": f"10.0.0.{i}", "reverse": n} for i, n in enumerate("abc")
    ]
    return {"address": address, "interface": interface, "names": told, "variables": variables}


ABOUT = [host(f"10.0.0.{number}") for number in range(3)]


def link(low, high, rate=1e8, trip=1e-4, offset=0.0, back=None):
    return HostLink(low, high, "", trip, rate, back or rate, offset, trip / 2)


def test_hosts_without_faults_have_none():
    links = (link("a", "b"), link("a", "c"), link("b", "c"))
    found = [_reached(HOSTS, links), *_names(HOSTS, ABOUT), _interface(HOSTS, ABOUT)]
    found += [*_clocks(links), *_speeds(HOSTS, links)]
    assert all(finding.works for finding in found)
    assert "GLOO_SOCKET_IFNAME=eth0" in found[2].detail


def test_wrong_name_resolution_is_reported_with_its_host():
    wrong = [{"name": n, "address": "", "reverse": ""} for n in "abc"]
    (finding,) = _names(HOSTS, [ABOUT[0], host("10.0.0.1", names=wrong), ABOUT[2]])
    assert not finding.works and "'a' does not resolve on b" in finding.detail
    loop = [{"name": "a", "address": "127.0.1.1", "reverse": ""}, *ABOUT[0]["names"][1:]]
    (finding,) = _names(HOSTS, [host("10.0.0.0", names=loop), *ABOUT[1:]])
    assert not finding.works and "'a' resolves to loopback (127.0.1.1) on a" in finding.detail


def test_variable_with_another_interface_is_reported():
    other = host("10.0.0.1", GLOO_SOCKET_IFNAME="docker0")
    finding = _interface(HOSTS, [ABOUT[0], other, ABOUT[2]])
    assert not finding.works and "docker0" in finding.detail
    assert finding.remedy == "export GLOO_SOCKET_IFNAME=eth0"


def test_pair_without_a_connection_is_reported_with_both_hosts():
    finding = _reached(HOSTS, (link("a", "b"), HostLink("a", "c", "timed out")))
    assert not finding.works and "c cannot reach a: timed out" in finding.detail


def test_clock_offset_is_reported():
    (finding,) = _clocks((link("a", "b"), link("a", "c", offset=-3.0)))
    assert not finding.works and "a and c differ by 3.00 s" in finding.detail


def test_slow_host_is_reported():
    slow = (link("a", "b"), link("a", "c", rate=1e6), link("b", "c", rate=1e6))
    assert any("c sends 1.00 MB/s" in one.detail for one in _speeds(HOSTS, slow))
    one_way = (link("a", "b", rate=1e8, back=1e6), link("a", "c", back=1e6), link("b", "c"))
    (told,) = [one for one in _speeds(HOSTS, one_way) if not one.works]
    assert told.detail == "a sends 1.00 MB/s at best"
    far = (link("a", "b"), link("a", "c", trip=1e-2), link("b", "c", trip=1e-2))
    assert any("to c" in one.detail for one in _speeds(HOSTS, far))


def test_two_hosts_here_find_nothing_wrong(tmp_path):
    starter = launcher("local", LaunchSettings(("localhost", "localhost")))
    with Store(tmp_path / "store.db") as store:
        found = examine_hosts(store, starter)
    (pair,) = found.links
    assert pair.bytes_per_second > 0 and pair.round_trip_seconds > 0
    assert abs(pair.clock_offset_seconds) < 1.0
    assert found.works and found.interface == "lo"


@pytest.mark.slow
@needs_lab
def test_lab_links_have_the_requested_bandwidth(tmp_path, lab_name):  # noqa: F811
    lab_up(LabSettings(2, 2.5e6), lab_name)
    starter = launcher("lab", LaunchSettings(options={"name": lab_name}))
    with Store(tmp_path / "store.db") as store:
        found = examine_hosts(store, starter)
        curve = probe_links(store, starter, 2, sizes=(2**20,), seconds_per_point=0.1)
    assert found.works, found.findings
    assert found.interface == "eth0"
    assert found.links[0].bytes_per_second < 2.6e6
    assert curve.bus_bandwidth(curve.points[0]) < 2.6e6
    assert curve.ranks == curve.nodes == 2


def test_a_host_that_does_not_start_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("paceline.measurement.preflight.interpreter", lambda _: "/bin/false")
    starter = launcher("local", LaunchSettings(("localhost", "localhost")))
    with (
        Store(tmp_path / "store.db") as store,
        pytest.raises(PacelineError, match="host localhost"),
    ):
        examine_hosts(store, starter)
