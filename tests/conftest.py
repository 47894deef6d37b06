"""Which slow tests run: all with --all, else a fifth of them, another fifth each day."""

import hashlib
import os
from datetime import UTC, datetime

import pytest
from hypothesis import settings

PARTS = 5

settings.register_profile("paceline", deadline=None)  # machines are shared: no timing in tests
settings.load_profile("paceline")


def pytest_addoption(parser):
    parser.addoption("--all", action="store_true", help="run every slow test, not today's part")


def pytest_report_header(config):
    if config.getoption("--all"):
        return "slow tests: all"
    return f"slow tests: part {todays_part() + 1} of {PARTS} (--all runs every one)"


def todays_part():
    """The part whose turn it is; PACELINE_TEST_PART=1..5 chooses one."""
    chosen = os.environ.get("PACELINE_TEST_PART")
    return (int(chosen) - 1 if chosen else datetime.now(UTC).timetuple().tm_yday) % PARTS


def pytest_collection_modifyitems(config, items):
    if config.getoption("--all"):
        return
    part = todays_part()
    kept, left = [], []
    for item in items:
        slow = item.get_closest_marker("slow")
        (left if slow and turn(item, slow) != part else kept).append(item)
    items[:] = kept
    config.hook.pytest_deselected(items=left)


def turn(item, slow):
    """The part a slow test belongs to: its mark's ``turn``, else any, but always the same one."""
    chosen = slow.kwargs.get("turn", int(hashlib.sha256(item.nodeid.encode()).hexdigest(), 16))
    return chosen % PARTS


@pytest.fixture(autouse=True)
def _private_place(tmp_path, monkeypatch):
    """Every test works in a directory of its own, with no store but its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PACELINE_STORE", raising=False)
