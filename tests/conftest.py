"""Test tiers: which tests run.

``--quick`` runs pure tests only: no subprocess, no framework, no command line; one that starts a
process in this tier fails. Without it, all tests run but slow ones, of which one in five is
chosen by the commit, so that a commit always runs the same tests. ``--frameworks`` (as in CI) adds
the tests of frameworks that Paceline installs; ``paceline frameworks install`` makes their
environments in the background while other tests run. ``--builds`` adds one framework that needs a
compiler. ``--all`` runs every test.
"""

import hashlib
import os
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

PARTS = 5
QUICK = {
    *("analysis", "calibration", "constants", "explanation", "hardware", "importers", "predictor"),
    *("render", "spec", "stats", "step", "tools", "validation", "workload"),
}
"""Directories of tests that the quick tier runs, with the files of `QUICK_FILES`."""
NOT_QUICK = ("slow", "thorough", "framework", "torch", "process")
QUICK_FILES = {"test_located_toml.py", "test_names.py", "test_naming.py", "test_units.py"}


def seed_of_commit():
    """A number that the checked-out commit determines; 0 outside a repository."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return 0
    return int(found[:8], 16)


SEED = int(os.environ.get("PACELINE_TEST_SEED") or seed_of_commit())
"""Chooses slow tests and damaged inputs; the commit determines it unless the variable is set."""

settings.register_profile("paceline", deadline=None)  # machines are shared: no timing in tests
settings.load_profile("paceline")

INSTALLATION = pytest.StashKey[Installation]()


def pytest_addoption(parser):
    parser.addoption("--quick", action="store_true", help="run pure tests only")
    parser.addoption("--all", action="store_true", help="run every test, not only the seed's part")
    parser.addoption("--frameworks", action="store_true", help="install and test frameworks too")
    parser.addoption("--builds", action="store_true", help="also build one, chosen by the seed")


def pytest_report_header(config):
    if config.getoption("--quick"):
        return "tier: quick"
    if config.getoption("--all"):
        return "slow tests: all"
    return (
        f"slow tests: part {SEED % PARTS + 1} of {PARTS}, by seed {SEED} "
        f"(PACELINE_TEST_SEED={SEED} repeats this choice, --all runs every one)"
    )


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
        and (everything or is_chosen(item, config.getoption("--builds")))
    }
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in wanted])
    items[:] = sorted((item for item in items if id(item) in wanted), key=place_in_order)


def is_quick(item):
    """Whether a test belongs to the quick tier, by its directory and marks."""
    if any(
        item.get_closest_marker(mark)
        for mark in ("slow", "framework", "torch", "process", "thorough")
    ):
        return False
    inside = item.path.relative_to(Path(__file__).parent).parts
    return inside[0] in QUICK or inside[0] in QUICK_FILES


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
