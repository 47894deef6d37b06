"""The barrier before ranks start, and the names of missing ranks."""

import json
import socket
import threading

import pytest

from paceline.launch.onhost import barrier
from paceline.launch.onhost.addresses import free_port
from paceline.launch.onhost.barrier import BarrierError, join_barrier, serve_barrier


def member(*ranks):
    return {"ranks": list(ranks), "host": f"host{ranks[0]}", "boot": "x"}


@pytest.fixture
def place():
    return "127.0.0.1", free_port("127.0.0.1")


def called(place, world, seconds=20.0):
    """A call in a background thread, and its result."""
    came = {}

    def run():
        try:
            came["present"] = serve_barrier(place, member(0), world, "secret", seconds)
        except BarrierError as error:
            came["error"] = str(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, came


def test_barrier_exchanges_all_agents(place):
    thread, came = called(place, 3)
    others = []
    second = threading.Thread(
        target=lambda: others.append(join_barrier(place, member(1), "secret", 20.0))
    )
    second.start()
    present, _ = join_barrier(place, member(2), "secret", 20.0)
    thread.join()
    second.join()
    assert [one["host"] for one in present] == ["host0", "host1", "host2"]
    assert [one["host"] for one in came["present"]] == ["host0", "host1", "host2"]
    assert others[0][0] == present


def test_the_clocks_of_one_machine_agree_within_the_stated_error(place):
    thread, _ = called(place, 2)
    _, clock = join_barrier(place, member(1), "secret", 20.0)
    thread.join()
    assert abs(clock.offset_seconds) <= clock.error_seconds + 1e-6


def test_a_clock_that_is_ahead_is_found(place, monkeypatch):
    thread, _ = called(place, 2)

    class Ahead:
        time = staticmethod(lambda: 1e6 + REAL.time())
        monotonic, sleep = staticmethod(REAL.monotonic), staticmethod(REAL.sleep)

    served = threading.get_ident()
    ahead = Ahead.time
    Ahead.time = staticmethod(lambda: ahead() if threading.get_ident() == served else REAL.time())
    monkeypatch.setattr(barrier, "time", Ahead)
    _, clock = join_barrier(place, member(1), "secret", 20.0)
    thread.join()
    assert clock.offset_seconds == pytest.approx(-1e6, abs=5.0)


REAL = barrier.time


def test_missing_ranks_are_named(place):
    thread, came = called(place, 4, seconds=1.0)
    with pytest.raises(BarrierError, match="ended before all ranks had reached it"):
        join_barrier(place, member(2), "secret", 20.0)
    thread.join()
    assert came["error"].startswith("rank 1, 3 did not reach 127.0.0.1:")


def test_unreachable_address_is_in_the_error(place):
    with pytest.raises(
        BarrierError, match=rf"cannot reach rank 0 at 127.0.0.1:{place[1]}: .*refus"
    ):
        join_barrier(place, member(1), "secret", 0.5)


@pytest.mark.parametrize(
    "line", [b"", b"nonsense\n", b"[]\n", b'{"token": "secret"}\n', b"\xff\xfe\n", b"9" * 200_000]
)
def test_strangers_do_not_count(place, line):
    thread, came = called(place, 2)
    with barrier._connect(place, REAL.monotonic() + 20.0) as stranger:
        stranger.sendall(line)
    with socket.create_connection(place, 5.0) as liar:
        liar.sendall(json.dumps({**member(1), "token": "wrong"}).encode() + b"\n")
        assert liar.recv(100) == b""
    present, _ = join_barrier(place, member(1), "secret", 20.0)
    thread.join()
    assert len(present) == len(came["present"]) == 2
