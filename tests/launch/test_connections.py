"""Peers that do not answer are found in the kernel's tables."""

import os
import socket
import sys

import pytest

from paceline.launch import LaunchExit, RankExit
from paceline.launch.onhost import connections
from paceline.launch.onhost.connections import unanswered
from paceline.measurement.failures import failure_reason

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's tables")
OURS, THEIRS = "4711", "4712"
ROW = "{n}: 0200C612:B2A4 {peer} {state} 00000000:00000000 01:00000100 {tries} 0 0 {socket} 1 0 20"


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """Tables of process 7, which has one socket, with the given rows."""
    monkeypatch.setattr(connections, "PROC", tmp_path)
    monkeypatch.setattr(connections, "descendants", lambda process: [])
    monkeypatch.setattr(sys, "byteorder", "little")
    (tmp_path / "7" / "fd").mkdir(parents=True)
    (tmp_path / "7" / "fd" / "3").symlink_to(f"socket:[{OURS}]")
    (tmp_path / "7" / "net").mkdir()

    def tables(*rows, name="tcp"):
        lines = [ROW.format(n=n, **row) for n, row in enumerate(rows)]
        (tmp_path / "7" / "net" / name).write_text("\n".join(["  sl  local_address", *lines]))

    return tables


def row(state, tries, socket=OURS, peer="0100C612:1F90"):
    return {"state": state, "tries": f"{tries:08X}", "socket": socket, "peer": peer}


def test_a_connection_that_is_not_answered_names_its_peer(kernel):
    kernel(row("02", 1))
    assert unanswered(7) == ["18.198.0.1:8080"]


def test_one_that_is_open_counts_when_it_was_sent_again_and_again(kernel):
    kernel(row("01", 3))
    assert unanswered(7) == []
    kernel(row("01", 4))
    assert unanswered(7) == ["18.198.0.1:8080"]


@pytest.mark.parametrize("other", [row("02", 0), row("0A", 9), row("02", 9, socket=THEIRS)])
def test_others_do_not_count(other, kernel):
    """One that was begun just now, one that listens, one of another process."""
    kernel(other)
    assert unanswered(7) == []


def test_addresses_of_either_version_are_read(kernel):
    mapped = "0000000000000000FFFF00000100C612:1F90"
    kernel(row("02", 1, peer=mapped), row("02", 1, peer="B80D0120" + "0" * 23 + "1:0050"),
           name="tcp6")  # fmt: skip
    assert unanswered(7) == ["18.198.0.1:8080", "[2001:db8::100:0]:80"]


def test_connections_that_are_answered_are_none_of_them():
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()),
    ):
        assert unanswered(os.getpid()) == []


def test_a_reason_begins_with_the_hosts_that_got_no_answer(tmp_path):
    exited = LaunchExit(
        (RankExit(0, None, tmp_path / "log"),), "timed out after 9 s", 9.0,
        unanswered={"b": ["10.0.0.1:7", "10.0.0.1:7"]},
    )  # fmt: skip
    told = failure_reason(exited, [[]])
    assert told.startswith("host b gets no response from 10.0.0.1:7; timed out after 9 s")
