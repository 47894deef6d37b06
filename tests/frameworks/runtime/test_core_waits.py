"""Cores of threads: how long they had none, and which they may use, of this very process."""

import math
import os
import threading
import time
from pathlib import Path

import pytest

RUNTIME = Path(__file__).parents[3] / "src" / "paceline" / "frameworks" / "runtime"


@pytest.fixture
def core_waits(monkeypatch):
    monkeypatch.syspath_prepend(str(RUNTIME))
    import core_waits

    return core_waits


def test_sleeping_is_no_delay(core_waits):
    """A sleeping thread is not runnable: only time outside the sleep can be delay."""
    begun, delay = time.perf_counter(), core_waits.run_delay()
    time.sleep(0.2)
    waited = core_waits.run_delay() - delay
    assert 0.0 <= waited <= time.perf_counter() - begun - 0.19


def test_only_threads_of_messages_are_looked_at(core_waits):
    done = threading.Event()
    named = threading.Thread(target=_called_gloo, args=(done,))
    plain = threading.Thread(target=done.wait)
    named.start()
    plain.start()
    try:
        while not (found := core_waits.message_delays()):
            time.sleep(0.01)
        assert list(found) == [str(named.native_id)]
    finally:
        done.set()
        named.join()
        plain.join()


def _called_gloo(done: threading.Event) -> None:
    Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text("gloo_tcp_loop")
    done.wait()


def test_a_system_that_keeps_no_books_is_not_known(core_waits, monkeypatch):
    assert math.isnan(core_waits.run_delay("no-such-thread"))
    monkeypatch.setattr(os, "listdir", _refused)
    assert core_waits.message_delays() == {}


def _refused(path: str) -> list[str]:
    raise PermissionError(path)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system cannot pin")
def test_a_thread_that_may_use_another_core_is_seen(core_waits):
    """Threads start with the cores of the one that starts them."""
    usable = os.sched_getaffinity(0)
    begun, done = threading.Event(), threading.Event()

    def pinned():
        os.sched_setaffinity(0, {min(usable)})
        begun.set()
        done.wait()

    thread = threading.Thread(target=pinned)
    thread.start()
    begun.wait()
    assert core_waits.thread_cores() == sorted(usable)
    os.sched_setaffinity(0, {max(usable)})
    try:
        seen = core_waits.thread_cores()
    finally:
        os.sched_setaffinity(0, usable)
        done.set()
        thread.join()
    assert {min(usable), max(usable)} <= set(seen)
