"""The first screen of a report, and its methods for a paper."""

import shutil
import subprocess
from pathlib import Path

import pytest
from builders import (
    a_launch,
    comparison_launches,
    keep,
    keep_profile,
    study_launches,
    timed_launch,
)

import paceline as pl
from commandline import run
from paceline import frameworks
from paceline.render.html_page import render
from paceline.render.markup import to_latex
from paceline.render.table import Table
from paceline.report.study_page import study_page
from paceline.report.study_sections.methods import bibtex, methods_latex, methods_text
from paceline.store import Outcome, RankSteps, Status, Store


@pytest.fixture
def store(tmp_path):
    path = tmp_path / "own.db"
    with Store(path) as opened:
        keep(opened, study_launches("mine"))
        keep(opened, comparison_launches("both", (("jax", 0.5), ("torch-ddp", 0.5))))
        keep_profile(opened)
    return path


def test_a_report_begins_with_its_verdict_figure_and_three_numbers(store):
    analysis = pl.Study.load("mine", store).analyse()
    page = study_page(analysis)
    assert page.lead.title == "From the ideal step to the instrumented one"
    assert len(page.facts) == 3
    shown = [figure for section in page.sections for figure in section.figures]
    assert page.lead not in shown
    text = render(page)
    assert text.index("Figure 1.") < text.index("<nav") < text.index("Figure 2.")
    folded = [section.title for section in page.sections if section.folded]
    assert folded[:3] == ["Design", "Environment", "Threats to validity"]
    assert [section.folded for section in page.sections] == sorted(
        section.folded for section in page.sections
    )


def test_a_tie_is_called_a_tie(store):
    page = study_page(pl.Study.load("both", store).analyse())
    assert page.verdict[0].startswith("With 2 processes, jax and torch-ddp are tied")
    assert all("(tied)" in fact.label for fact in page.facts)


def test_an_asymmetric_interval_is_not_a_half_width(tmp_path):
    steps = (0.4, 0.5, 6.0)
    launches = [timed_launch(f"l{n}", [step] * 4, study="s") for n, step in enumerate(steps)]
    with Store(tmp_path / "own.db") as opened:
        keep(opened, launches)
    facts = study_page(pl.Study.load("s", tmp_path / "own.db").analyse()).facts
    assert facts[0].note.startswith("[") and "±" not in facts[0].note


def test_methods_state_design_replication_and_versions(store):
    analysis = pl.Study.load("mine", store).analyse()
    text = methods_text(analysis)
    for part in ("resnet44", "torch-ddp", "launch is the unit of replication", "95 %", "Paceline"):
        assert part in text
    assert "The build of" not in text
    latex = methods_latex(analysis)
    assert r"\cite{paceline}" in latex and "%" not in latex.replace(r"\%", "")
    assert bibtex(analysis).startswith("@software{paceline,")


def test_methods_state_the_compiler_and_its_flags(tmp_path):
    facts = {"versions": {"framework": "torch 2", "build": "GCC 13.3, -O2 -fno-math-errno, AVX2"}}
    ranks = (RankSteps(0, (9.0, 1.0, 1.0), (9.0, 1.0, 1.0)),)
    outcome = Outcome(Status.FINISHED, "2026", ranks=ranks, facts=facts)
    with Store(tmp_path / "own.db") as opened:
        keep(opened, [a_launch("l1", study="s", world_size=1, outcome=outcome)])
    analysis = pl.Study.load("s", tmp_path / "own.db").analyse()
    sentence = "The build of torch-ddp used GCC 13.3, -O2 -fno-math-errno, AVX2."
    assert sentence in methods_text(analysis) and sentence in methods_latex(analysis)


@pytest.mark.torch
def test_the_worker_of_pytorch_reports_its_build(monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.syspath_prepend(Path(frameworks.__file__).parent / "torch")
    from torch_devices import versions

    compiler, *flags, capability = versions()["build"].split(", ")
    assert compiler and capability and "-Wall" not in "".join(flags)


PRINTED = (
    "predict --model resnet50,llama3_8b --cluster dgx-a100 -j 1x8,4x8",
    "whatif --model gpt2_xl --cluster dgx-a100 --nodes 4",
    "inspect resnet50",
    "catalog models",
    "reproduce A",
)


@pytest.mark.slow
def test_latex_compiles_methods_figures_and_tables(store, tmp_path):
    if shutil.which("pdflatex") is None:
        pytest.skip("pdflatex is not installed: apt-get install texlive-latex-recommended")
    study = pl.Study.load("both", store)
    study.figures(tmp_path)
    tables = [to_latex(part) for part in study.parts() if isinstance(part, Table)]
    assert tables
    tables += [run(f"paceline --tables latex {command}") for command in PRINTED]
    assert r"\begin{longtable}" in tables[-2] and r"\rule" in tables[-3]
    (tmp_path / "tables.tex").write_text("\n".join(tables))
    (tmp_path / "paper.tex").write_text(
        r"\documentclass{article}\usepackage[T1]{fontenc}\usepackage{graphicx,booktabs,longtable}"
        r"\begin{document}\input{methods}\input{tables}\input{figures}"
        r"\bibliographystyle{plain}\bibliography{paceline}\end{document}"
    )
    for command in (["pdflatex", "-halt-on-error"], ["bibtex"], ["pdflatex", "-halt-on-error"]):
        name = "paper" if command == ["bibtex"] else "paper.tex"
        done = subprocess.run([*command, name], cwd=tmp_path, capture_output=True, check=False)
        assert done.returncode == 0, done.stdout.decode(errors="replace")[-2000:]
    assert (tmp_path / "paper.pdf").stat().st_size > 10_000
