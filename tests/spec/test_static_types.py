"""mypy rejects wrong keywords and types of public functions."""

import subprocess
import sys
from pathlib import Path

import pytest

import paceline

pytest.importorskip("mypy")

WRONG = {
    'pl.advise("gpt2", foo=1)': "call-arg",
    "pl.measure(bogus=2)": "call-arg",
    'pl.predict("gpt2", nodes="4")': "arg-type",
    'pl.whatif("gpt2", tp="8")': "call-overload",
    'pl.sweep("gpt2", tp=8)': "call-overload",
    'pl.bandwidth_for("gpt2", cp_form="ring", target_efficiency=0.9)': "call-arg",
    'pl.predict("gpt2", nodes=[1, 2]).step_seconds': "attr-defined",
}
RIGHT = """
one: pl.Prediction = pl.predict("gpt2", "dgx-a100", nodes=4, bucket="25MiB", precision=None)
for each in pl.predict(["gpt2", "resnet50"], batch=[1, 2]):
    each.step_seconds
pl.advise("gpt2", global_batch=64, nodes=[1, 2], tp=8, link=["100gbit", "400gbit"])
"""


@pytest.mark.process
@pytest.mark.thorough
def test_wrong_keywords_fail_the_type_check(tmp_path):
    file = tmp_path / "calls.py"
    lines = ["import paceline as pl", *WRONG, *RIGHT.splitlines()]
    file.write_text("\n".join(lines) + "\n")
    source = str(Path(paceline.__file__).parents[1])
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--hide-error-context"]
    command += ["--cache-dir", str(tmp_path / "cache"), "--follow-imports", "silent", str(file)]
    answer = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env={"MYPYPATH": source}, check=False
    )
    errors = [line for line in answer.stdout.splitlines() if ": error: " in line]
    assert {int(line.split(":")[1]) for line in errors} == set(range(2, 2 + len(WRONG)))
    for number, code in enumerate(WRONG.values(), 2):
        own = [line for line in errors if line.split(":")[1] == str(number)]
        assert any(line.endswith(f"[{code}]") for line in own), own
