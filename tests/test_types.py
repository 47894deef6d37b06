"""mypy rejects wrong keywords and types of public functions."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CALLS = ROOT / "tests" / "fixtures" / "types" / "keywords.py"


@pytest.mark.process
def test_mypy_rejects_exactly_the_wrong_calls():
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--no-pretty", str(CALLS)]
    answer = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    lines = CALLS.read_text(encoding="utf-8").splitlines()
    wrong = range(lines.index("# rejected") + 2, len(lines) + 1)
    rejected = {int(number) for number in re.findall(r"keywords\.py:(\d+): error", answer.stdout)}
    assert rejected == set(wrong), answer.stdout + answer.stderr
