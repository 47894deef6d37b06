"""How much is attacked: a part in each run of CI, everything with --all."""

import pytest


@pytest.fixture
def size(request):
    """``size(part, whole)`` is how many attacks a test makes."""
    return lambda part, whole: whole if request.config.getoption("--all") else part
