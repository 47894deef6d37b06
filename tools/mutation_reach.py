"""A pytest plugin that records which functions of the package each test calls.

`mutate.py` loads it once per commit, so that a mutant runs only the tests that can see it.
Results cached between tests (``lru_cache``) hide calls: a function is credited to the first test
that computes a result. That test computes it again when it runs alone.
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType

import pytest

SOURCE = os.environ["MUTATION_SOURCE"] + os.sep
REACHED = Path(os.environ["MUTATION_REACH"])

_seen: set[CodeType] = set()
_reached: dict[str, dict[str, float]] = {}
_failed: set[str] = set()


def _record(frame: FrameType, event: str, argument: object) -> None:
    _seen.add(frame.f_code)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Record calls, and the duration of the test, from its fixtures to their end."""
    _seen.clear()
    start = time.perf_counter()
    sys.settrace(_record)
    try:
        return (yield)
    finally:
        sys.settrace(None)
        seconds = round(time.perf_counter() - start, 3)
        for code in _seen:
            if code.co_filename.startswith(SOURCE):
                key = f"{code.co_filename.removeprefix(SOURCE)}:{code.co_firstlineno}"
                _reached.setdefault(key, {})[item.nodeid] = seconds


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Remember failures: a test that fails without a mutant says nothing about mutants."""
    if report.failed:
        _failed.add(report.nodeid)


def pytest_sessionfinish() -> None:
    """Write the tests of each function that pass, with the seconds they took."""
    passing = {
        key: {test: seconds for test, seconds in tests.items() if test not in _failed}
        for key, tests in _reached.items()
    }
    REACHED.write_text(json.dumps(passing))
