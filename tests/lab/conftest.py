import os

import pytest

from paceline.lab import lab_down, missing_for_lab

missing = missing_for_lab()
needs_lab = pytest.mark.skipif(bool(missing), reason=missing or "labs can be made")


@pytest.fixture
def lab_name(tmp_path, monkeypatch):
    """The name of a lab for one test, with its own records, removed after the test."""
    monkeypatch.setenv("PACELINE_LAB_STATE", str(tmp_path / "state"))
    name = f"t{os.getpid()}"
    yield name
    lab_down(name)
