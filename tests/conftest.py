"""Which tests run. Slow ones: all with --all, else the fifth that the seed chooses.

Tests of frameworks that Paceline installs run with --frameworks (as CI does) or --all. Their
environments are made by ``paceline frameworks install`` in the background, from the start, while
the other tests run. Of those that take a compiler minutes to build, the seed chooses one with
--builds.
"""

import hashlib
import os
import random
import signal
from pathlib import Path

import pytest
from hypothesis import settings
from installation import Installation

# Started with nohup or in the background of a script, this process and all of its own would ignore
# what tests send them.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)

PARTS = 5
SEED = int(os.environ.get("PACELINE_TEST_SEED") or random.SystemRandom().randrange(10**6))
"""Chosen anew for each run unless it is set."""

settings.register_profile("paceline", deadline=None)  # machines are shared: no timing in tests
settings.load_profile("paceline")

INSTALLATION = pytest.StashKey[Installation]()


def pytest_addoption(parser):
    parser.addoption("--all", action="store_true", help="run every test, not only the seed's part")
    parser.addoption("--frameworks", action="store_true", help="install and test frameworks too")
    parser.addoption("--builds", action="store_true", help="also build one, chosen by the seed")


def pytest_report_header(config):
    if config.getoption("--all"):
        return "slow tests: all"
    return (
        f"slow tests: part {SEED % PARTS + 1} of {PARTS}, by seed {SEED} "
        f"(PACELINE_TEST_SEED={SEED} repeats this choice, --all runs every one)"
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Leave out what is not wanted; what waits for an installation comes last."""
    everything = config.getoption("--all")
    frameworks = everything or config.getoption("--frameworks")
    wanted = {
        id(item)
        for item in items
        if (frameworks or not item.get_closest_marker("framework"))
        and (everything or is_chosen(item, config.getoption("--builds")))
    }
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in wanted])
    items[:] = sorted((item for item in items if id(item) in wanted), key=place_in_order)


def is_chosen(item, builds_one):
    """Whether the seed chooses a test: quick ones, a part of the slow ones, those of one build."""
    slow, framework = item.get_closest_marker("slow"), item.get_closest_marker("framework")
    if framework and framework.kwargs.get("builds"):
        builds = framework.kwargs["builds"]
        if not builds_one or framework.args[0] != builds[SEED % len(builds)]:
            return False
    if slow is None:
        return True
    own = int(hashlib.sha256(item.nodeid.encode()).hexdigest(), 16)
    return own % PARTS == SEED % PARTS


def place_in_order(item):
    """Ordinary tests, then installed frameworks one after another, then what is built."""
    framework = item.get_closest_marker("framework")
    if framework is None:
        return 0, ""
    return (2 if framework.kwargs.get("builds") else 1), framework.args[0]


def pytest_collection_finish(session):
    """Begin to install the environments that the collected tests need, in their order."""
    marks = [item.get_closest_marker("framework") for item in session.items]
    needed = list(dict.fromkeys(mark.args[0] for mark in marks if mark))
    if needed and not session.config.option.collectonly:
        own = os.environ.get("PACELINE_ENVIRONMENTS")
        session.config.stash[INSTALLATION] = Installation(
            needed, Path(own or session.config.cache.mkdir("environments"))
        )


def pytest_unconfigure(config):
    if INSTALLATION in config.stash:
        config.stash[INSTALLATION].end()


@pytest.fixture
def installed(request, monkeypatch):
    """Waits until the environment of the test's framework is there, and uses it."""
    installation = request.config.stash[INSTALLATION]
    mark = request.node.get_closest_marker("framework")
    limited = "builds" in mark.kwargs and not request.config.getoption("--all")
    installation.wait_for(mark.args[0], limited)
    monkeypatch.setenv("PACELINE_ENVIRONMENTS", str(installation.directory))


@pytest.fixture
def quick_framework(monkeypatch):
    """A framework that trains nothing, for this test only."""
    from measurement import quick

    from paceline.frameworks.registry import frameworks

    monkeypatch.setitem(frameworks(), quick.ADAPTER.name, quick.ADAPTER)
    return quick.ADAPTER


@pytest.fixture(autouse=True)
def _private_place(tmp_path, monkeypatch):
    """Every test works in a directory of its own, with no store but its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PACELINE_STORE", raising=False)
