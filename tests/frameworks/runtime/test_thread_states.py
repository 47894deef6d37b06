"""Cores of threads: how long they had none, and which they may use, of this very process."""

import os
import threading
import time
from pathlib import Path

import pytest

RUNTIME = Path(__file__).parents[3] / "src" / "paceline" / "frameworks" / "runtime"


@pytest.fixture
def thread_states(monkeypatch):
    monkeypatch.syspath_prepend(str(RUNTIME))
    import thread_states

    return thread_states


def test_a_sleeping_thread_is_neither_running_nor_runnable(thread_states):
    clock = thread_states.ThreadClock()
    begun, (running, waited) = time.perf_counter(), clock.read()
    time.sleep(0.2)
    ran, late = clock.read()
    taken = time.perf_counter() - begun
    assert 0.0 <= late - waited <= taken - 0.19
    assert 0.0 <= ran - running <= taken - 0.19
    clock.close()
    assert clock.read() is None


def test_work_is_counted_to_the_moment_of_the_reading(thread_states):
    """The scheduler itself counts up to its last tick."""
    clock = thread_states.ThreadClock()
    running, _ = clock.read()
    cpu = time.thread_time()
    sum(range(20_000))
    assert clock.read()[0] - running == pytest.approx(time.thread_time() - cpu, abs=1e-3)


def test_a_delay_while_reading_comes_after_the_moment(thread_states, monkeypatch):
    """The thread had no core for 10 ms after the moment, while its times were read."""
    clock = thread_states.ThreadClock()
    monkeypatch.setattr(thread_states.time, "perf_counter", lambda: 5.01)
    monkeypatch.setattr(thread_states.time, "thread_time", lambda: 1.0)
    monkeypatch.setattr(thread_states, "parse_schedstat", lambda _: (1.0, 2.01, 7))
    assert clock.read(5.0) == pytest.approx((1.0, 2.0))


def test_a_delay_while_reading_is_at_most_the_wait_since_the_last_reading(
    thread_states, monkeypatch
):
    """The reading took 10 ms, in which the thread waited 1 ms for a core."""
    clock = thread_states.ThreadClock()
    readings = iter([(1.0, 2.0, 7), (1.0, 2.001, 8), (1.0, 2.001, 8)])
    clock._counted = lambda: next(readings)
    monkeypatch.setattr(thread_states.time, "thread_time", lambda: 1.0)
    monkeypatch.setattr(thread_states.time, "perf_counter", lambda: 5.0)
    assert clock.read(5.0) == pytest.approx((1.0, 2.0))
    monkeypatch.setattr(thread_states.time, "perf_counter", lambda: 5.11)
    assert clock.read(5.1) == pytest.approx((1.0, 2.0))


def test_a_thread_runs_while_its_turn_lasts(thread_states, monkeypatch):
    clock = thread_states.ThreadClock()
    monkeypatch.setattr(thread_states.time, "perf_counter", lambda: 5.0)
    monkeypatch.setattr(thread_states.time, "thread_time", lambda: 1.0)
    monkeypatch.setattr(thread_states, "parse_schedstat", lambda _: (0.9, 2.0, 7))
    assert clock.read(5.0) == pytest.approx((1.0, 2.0))
    assert clock.read(5.25) == pytest.approx((1.25, 2.0))


def test_threads_have_classes_by_their_name(thread_states):
    done = threading.Event()
    named = threading.Thread(target=_called_gloo, args=(done,))
    plain = threading.Thread(target=done.wait)
    named.start()
    plain.start()
    try:
        for _ in range(1000):
            found = thread_states.thread_times()
            if found.get(str(named.native_id), ("",))[0] == thread_states.MESSAGES:
                break
            time.sleep(0.01)
        assert found[str(named.native_id)][0] == thread_states.MESSAGES
        assert found[str(os.getpid())][0] == thread_states.MAIN
        assert str(plain.native_id) not in thread_states.thread_times(plain.native_id)
    finally:
        done.set()
        named.join()
        plain.join()


def _called_gloo(done: threading.Event) -> None:
    Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text("gloo_tcp_loop")
    done.wait()


def test_times_of_a_class_are_differences(thread_states):
    before = {"1": ("main", 1.0, 0.5), "2": ("compute", 2.0, 0.0)}
    after = {"1": ("main", 1.5, 0.6), "2": ("compute", 2.2, 0.3), "3": ("compute", 0.1, 0.1)}
    found = thread_states.class_times(before, after)
    assert found["main"] == pytest.approx([1, 0.5, 0.1])
    assert found["compute"] == pytest.approx([2, 0.3, 0.3])


def test_a_system_that_counts_nothing_is_unknown(thread_states, monkeypatch):
    assert thread_states.parse_schedstat(b"0 0 0") is None
    assert thread_states.parse_schedstat(b"") is None
    monkeypatch.setattr(os, "listdir", _refused)
    assert thread_states.thread_times() == {}


def _refused(path: str) -> list[str]:
    raise PermissionError(path)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system cannot pin")
def test_a_thread_that_may_use_another_core_is_seen(thread_states):
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
    assert thread_states.thread_cores() == sorted(usable)
    os.sched_setaffinity(0, {max(usable)})
    try:
        seen = thread_states.thread_cores()
    finally:
        os.sched_setaffinity(0, usable)
        done.set()
        thread.join()
    assert {min(usable), max(usable)} <= set(seen)
