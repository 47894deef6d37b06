"""Test tiers: which tests run.

``--quick`` runs pure tests only: no subprocess, no framework, no command line; one that starts a
process in this tier fails. Without it, all tests run but those marked ``slow``. ``--frameworks``
(as in CI) adds the tests of frameworks that Paceline installs; ``paceline frameworks install``
creates their environments in the background while other tests run. ``--all`` runs every test,
including frameworks that need a compiler. Nothing is chosen at random: a commit always runs the
same tests with the same examples.
"""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from hypothesis import settings
from installation import Installation

# Started with nohup or in the background of a script, this process and all of its own would ignore
# what tests send them.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)

QUICK = {
    *("analysis", "calibration", "constants", "explanation", "hardware", "importers", "predictor"),
    *("render", "spec", "stats", "step", "tools", "validation", "workload"),
}
"""Directories of tests that the quick tier runs, with the files of `QUICK_FILES`."""
NOT_QUICK = ("slow", "thorough", "framework", "torch", "process")
QUICK_FILES = {"test_located_toml.py", "test_names.py", "test_naming.py", "test_units.py"}


# Printed text is as wide as without a terminal, wherever the tests run.
os.environ["COLUMNS"] = "100"

# Machines are shared, so no deadline; the same examples in every run, so a failure can be repeated.
settings.register_profile("paceline", deadline=None, derandomize=True, database=None)
settings.load_profile("paceline")

INSTALLATION = pytest.StashKey[Installation]()


def pytest_addoption(parser):
    parser.addoption("--quick", action="store_true", help="run pure tests only")
    parser.addoption("--all", action="store_true", help="run every test, slow ones too")
    parser.addoption("--frameworks", action="store_true", help="install and test frameworks too")


def pytest_report_header(config):
    if config.getoption("--quick"):
        return "tier: quick"
    return "tier: all" if config.getoption("--all") else "tier: all but slow tests"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Deselect tests of other tiers; tests that wait for an installation come last."""
    if config.getoption("--quick"):
        kept = [item for item in items if is_quick(item)]
        config.hook.pytest_deselected(items=[item for item in items if not is_quick(item)])
        items[:] = kept
        return
    everything = config.getoption("--all")
    frameworks = everything or config.getoption("--frameworks")
    wanted = {
        id(item)
        for item in items
        if (frameworks or not item.get_closest_marker("framework"))
        and (everything or not is_slow(item))
    }
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in wanted])
    items[:] = sorted((item for item in items if id(item) in wanted), key=place_in_order)


def is_quick(item):
    """Whether a test belongs to the quick tier, by its directory and marks."""
    if any(item.get_closest_marker(mark) for mark in NOT_QUICK):
        return False
    inside = item.path.relative_to(Path(__file__).parent).parts
    return inside[0] in QUICK or inside[0] in QUICK_FILES


def is_slow(item):
    """Whether a test runs only with ``--all``: slow ones, and those that compile a framework."""
    framework = item.get_closest_marker("framework")
    return bool(item.get_closest_marker("slow") or (framework and framework.kwargs.get("builds")))


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
    installation.wait_for(mark.args[0])
    monkeypatch.setenv("PACELINE_ENVIRONMENTS", str(installation.directory))


@pytest.fixture
def quick_framework(monkeypatch):
    """A framework that trains nothing, for this test only."""
    from measurement import quick

    from paceline.frameworks.framework_registry import frameworks

    monkeypatch.setitem(frameworks(), quick.ADAPTER.name, quick.ADAPTER)
    return quick.ADAPTER


@pytest.fixture(autouse=True)
def _no_process(request, monkeypatch):
    """In the quick tier a test that starts a process fails: mark it with ``process``."""
    if request.config.getoption("--quick"):

        def refuse(*_, **__):
            raise AssertionError("a quick test started a process; mark it with pytest.mark.process")

        monkeypatch.setattr(subprocess.Popen, "__init__", refuse)
        monkeypatch.setenv("COLUMNS", "100")  # workers of xdist have a terminal of 80 columns


@pytest.fixture(autouse=True)
def _private_place(tmp_path, monkeypatch):
    """Every test works in a directory of its own, with no store but its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PACELINE_STORE", raising=False)


@pytest.fixture(scope="session")
def chromium():
    """Debian's Chromium, which asks nobody for anything."""
    from playwright.sync_api import sync_playwright

    found = shutil.which("chromium")
    assert found, "chromium is not installed: .ci/run installs it"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=found,
            args=["--no-sandbox", "--disable-background-networking", "--disable-sync"],
        )
        yield browser
        browser.close()
