"""How much is attacked: a part in each run of CI, everything with --all."""

import pytest

from conftest import SEED


@pytest.fixture
def size(request):
    """``size(part, whole)`` is how many attacks a test makes."""
    return lambda part, whole: whole if request.config.getoption("--all") else part


@pytest.fixture
def attack_seed(request):
    """Where a part begins: another place in each run, the beginning with --all."""
    return 0 if request.config.getoption("--all") else SEED
