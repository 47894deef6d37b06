"""Remedies that are measured: the repeated command, and its saving."""

from dataclasses import replace

import pytest
from builders import timed_launch

from paceline.errors import InputError
from paceline.explanation.explain_step import explain
from paceline.explanation.tried_remedy import TriedRemedy, try_remedy


def explained(*command):
    made = timed_launch(1, [0.1] * 6)
    return explain([replace(made, job={**made.job, "command": list(command)})])


def test_pairs_have_an_interval_and_name_their_command():
    tried = TriedRemedy("threads=1", 0.2, 0.05, (0.04, 0.05, 0.06), ("python", "train.py"))
    assert tried.measured_seconds == pytest.approx(0.05)
    assert tried.half_width == pytest.approx(4.303 * 0.01 / 3**0.5, rel=1e-3)
    assert "3 pairs of launches of 'python train.py'" in tried.describe()


def test_a_command_without_its_secrets_is_not_repeated(monkeypatch):
    import paceline.measurement.api as measurement

    monkeypatch.setattr(measurement, "run", lambda *given, **named: pytest.fail("it ran"))
    with pytest.raises(InputError, match=r"train\.py --token"):
        try_remedy(explained("python", "train.py", "--token", "***"), "threads=1", 1, None)


def test_without_a_command_nothing_is_repeated():
    with pytest.raises(InputError, match="this study has none"):
        try_remedy(explain([timed_launch(1, [0.1] * 6)]), "threads=1", 1, None)
