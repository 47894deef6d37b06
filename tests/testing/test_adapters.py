"""Every framework against its contract; those without an environment are skipped with the line
that installs it."""

import pytest

from paceline.errors import PacelineError
from paceline.measure.frameworks import FRAMEWORKS, check_runnable, framework
from paceline.store import Store
from paceline.testing.adapter_suite import CHECKS, QUICK, Bench, run_check

ORDINARY = ("losses", "synchronisation", "crash", "out of memory")
OTHERS = [name for name, one in FRAMEWORKS.items() if one.environment and name != "torch-ddp"]


def assert_check(name, check, tmp_path):
    wanted = framework(name)
    try:
        check_runnable(wanted)
    except PacelineError as error:
        pytest.skip(f"{error}: {wanted.install}")
    with Store(tmp_path / "store.db") as store:
        result = run_check(check, CHECKS[check], Bench(wanted, store))
    if result.passed is None:
        pytest.skip(result.words)
    assert result.passed, result.words


@pytest.mark.parametrize("check", ORDINARY)
def test_pytorch_keeps_its_contract(check, tmp_path):
    assert_check("torch-ddp", check, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("check", [name for name in CHECKS if name not in ORDINARY])
def test_pytorch_keeps_the_rest_of_its_contract(check, tmp_path):
    assert_check("torch-ddp", check, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("check", QUICK)
def test_frameworks_keep_their_contract(name, check, tmp_path):
    assert_check(name, check, tmp_path)
