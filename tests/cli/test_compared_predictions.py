"""``compare`` of two predictions, and tables as LaTeX that compiles."""

import json
import shutil
import subprocess

import pytest
from click.testing import CliRunner

from paceline.cli.main import cli

JOB = "predict --model resnet50 --cluster dgx-a100 --batch 64"


def run(line):
    result = CliRunner().invoke(cli, line.split(), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_ratio_of_two_predictions_has_its_own_interval(tmp_path):
    names = [str(tmp_path / f"{nodes}.json") for nodes in (1, 2)]
    for name, link in zip(names, ("ib_hdr_200g", "1gbit"), strict=True):
        (tmp_path / name).write_text(run(f"{JOB} --nodes 4 --link {link} --json"))
    text = run(f"compare {' '.join(names)}")
    assert "90 % interval of the ratio" in text and "not distinguishable" not in text
    ratio = json.loads(run(f"compare {' '.join(names)} --json"))["step_ratio"]
    assert 1.0 < ratio["low"] < ratio["value"] < ratio["high"]
    assert "not distinguishable" in run(f"compare {names[0]} {names[0]}")


@pytest.mark.process
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
@pytest.mark.parametrize(
    "command",
    [
        f"{JOB} --nodes 1,2 --link 10gbit,100gbit",
        "sweep --model alexnet --cluster knl-opa --nodes 8 --axis nodes=2,8 --link 10gbit,1gbit",
        "catalog links",
    ],
)
def test_latex_tables_compile_with_caption_and_label(command, tmp_path):
    table = run(f"--tables latex {command}")
    assert table.count(r"\caption{") == table.count(r"\label{tab:") > 0
    document = (
        r"\documentclass{article}\usepackage{booktabs,longtable}\begin{document}"
        f"\n{table}\n"
        r"\end{document}"
    )
    (tmp_path / "t.tex").write_text(document)
    ran = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout.decode(errors="replace")[-1500:]
