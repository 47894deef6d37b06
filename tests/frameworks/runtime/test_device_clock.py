import sys
import time
from pathlib import Path

import pytest

RUNTIME = Path(__file__).parents[3] / "src" / "paceline" / "frameworks" / "runtime"


@pytest.fixture
def clock(monkeypatch):
    """The clock's module with a time that only sleeping moves."""
    monkeypatch.syspath_prepend(str(RUNTIME))
    import device_clock

    now = [100.0]
    monkeypatch.setattr(device_clock.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(
        device_clock.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds)
    )
    yield device_clock, now
    sys.modules.pop("device_clock", None)


def test_host_time_between_layers_is_hidden(clock):
    module, now = clock
    device = module.DeviceClock()
    device.begin()
    for _ in range(10):
        now[0] += 0.0005  # the host
        device.work(0.01)
    assert now[0] == pytest.approx(100.1)


def test_short_layers_end_at_the_right_moment_together(clock):
    module, now = clock
    device = module.DeviceClock()
    device.begin()
    for _ in range(1000):
        device.work(0.00005)
    device.finish(0.0)
    assert now[0] == pytest.approx(100.05)


def test_update_starts_after_all_messages(clock):
    module, now = clock
    device = module.DeviceClock()
    device.begin()
    device.work(0.01)
    now[0] += 0.3  # messages
    device.finish(0.02)
    assert now[0] == pytest.approx(100.33)
    assert device.late_seconds == [0.0]


def test_a_device_waits_with_a_host_that_waits(clock):
    module, now = clock
    device = module.DeviceClock(host_waits=True)
    device.begin()
    now[0] += 0.3  # weights come
    device.work(0.01)
    assert now[0] == pytest.approx(100.31)
    assert time.monotonic() > 0
