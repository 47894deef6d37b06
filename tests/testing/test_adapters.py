"""Every framework against its contract; what is not installed is skipped with the line that does.

Frameworks take turns like other slow tests. On its day one that is small is installed, into
pytest's cache, where it stays; the end of the output says which ran and which were left.
"""

import time

import pytest

from paceline.errors import PacelineError
from paceline.frameworks.command import check_runnable
from paceline.frameworks.environments import install
from paceline.frameworks.registry import environment, framework, frameworks
from paceline.store import Store
from paceline.testing.adapter_suite import CHECKS, QUICK
from paceline.testing.bench import Bench
from paceline.testing.contract import run_check
from paceline.testing.network_checks import check_network, of_a_size_to_build
from paceline.workload import zoo

ORDINARY = ("losses", "synchronisation", "crash", "out of memory")
OTHERS = [name for name, one in frameworks().items() if one.environment and name != "torch-ddp"]
TURNS = [
    pytest.param(name, marks=pytest.mark.slow(turn=number)) for number, name in enumerate(OTHERS)
]
"""As many frameworks each day, so that no day takes long."""

SMALL = ("chainer", "jax", "mxnet", "paddle")
"""Environments that are downloaded in a minute or so and built from nothing."""

COLLECTED_AT = time.monotonic()
INSTALL_BEFORE_SECONDS = 600.0
"""Nothing is installed later than this into a run of the tests."""


@pytest.fixture
def installed(request, monkeypatch):
    """A framework by its name, ready to run; a test of one that cannot be is skipped."""

    def ready(name):
        wanted = framework(name)
        try:
            check_runnable(wanted)
        except PacelineError:
            cache = request.config.cache.mkdir("environments")
            monkeypatch.setenv("PACELINE_ENVIRONMENTS", str(cache))
            late = time.monotonic() - COLLECTED_AT > INSTALL_BEFORE_SECONDS
            if wanted.environment in SMALL and not late:
                install(environment(wanted.environment), lambda words: None)
        try:
            check_runnable(wanted)
        except PacelineError:
            pytest.skip(f"not installed: {wanted.install}")
        return wanted

    return ready


def assert_check(name, check, tmp_path):
    with Store(tmp_path / "store.db") as store:
        result = run_check(check, CHECKS[check], Bench(framework(name), store))
    assert result.passed, result.words


@pytest.mark.parametrize("check", ORDINARY)
def test_pytorch_keeps_its_contract(check, tmp_path):
    assert_check("torch-ddp", check, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("check", [name for name in QUICK if name not in ORDINARY])
def test_pytorch_keeps_the_rest_of_its_contract(check, tmp_path):
    assert_check("torch-ddp", check, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("network", [name for name in zoo.names() if of_a_size_to_build(name)])
def test_pytorch_builds_every_network(network, tmp_path):
    with Store(tmp_path / "store.db") as store:
        assert network in check_network(Bench(framework("torch-ddp"), store), network)


@pytest.mark.parametrize("name", TURNS)
def test_a_framework_keeps_its_contract(name, installed, tmp_path):
    wanted = installed(name)
    with Store(tmp_path / "store.db") as store:
        bench = Bench(wanted, store)
        results = [run_check(label, check, bench) for label, check in QUICK.items()]
    failed = [f"{one.check}: {one.words}" for one in results if one.passed is False]
    assert not failed


@pytest.mark.parametrize(
    "name", [turn for turn in TURNS if frameworks()[turn.values[0]].operations is not None]
)
def test_a_framework_builds_images_and_sequences(name, installed, tmp_path):
    """PyTorch's workers build the whole zoo; of the others, two networks that are unlike."""
    wanted = installed(name)
    with Store(tmp_path / "store.db") as store:
        for network in ("mobilenet_v2", "lstm_ptb"):
            assert network in check_network(Bench(wanted, store), network)
