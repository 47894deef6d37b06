"""Rendezvous of Horovod's ranks at the address of the machine's name."""

import os
import socket
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

HERE = "198.51.100.7"


@pytest.fixture
def resolve_own_name_to():
    from horovod_rendezvous import resolve_own_name_to

    return resolve_own_name_to


@pytest.fixture
def named(monkeypatch):
    """Lets the machine's name stand for an address; nobody may change the name."""

    def stands_for(address):
        monkeypatch.setattr(socket, "gethostbyname", lambda name: address)

    def refused(name):
        raise PermissionError

    monkeypatch.setattr("horovod_rendezvous._set_host_name", refused)
    monkeypatch.setattr(socket, "gethostname", lambda: "box")
    return stands_for


@pytest.mark.parametrize(
    ("address", "several"), [(HERE, True), ("127.0.1.1", False), ("198.51.100.9", True)]
)
def test_a_name_that_others_can_use_is_left_alone(address, several, named, resolve_own_name_to):
    named(address)
    resolve_own_name_to(HERE, several)


def test_loopback_host_name_is_an_error_without_root(named, resolve_own_name_to):
    named("127.0.1.1")
    with pytest.raises(RuntimeError, match=rf"box to resolve to {HERE}, not 127.0.1.1: set it in"):
        resolve_own_name_to(HERE, True)


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="needs root, Linux")
def test_a_process_gets_a_name_of_its_own(resolve_own_name_to):
    """In the thread that asks and those it starts; the machine keeps its name."""
    before = socket.gethostname()

    def named():
        resolve_own_name_to(HERE, True)
        with ThreadPoolExecutor(1) as below:
            return socket.gethostname(), below.submit(socket.gethostname).result()

    with ThreadPoolExecutor(1) as apart:
        assert apart.submit(named).result() == (HERE, HERE)
    assert socket.gethostname() == before
