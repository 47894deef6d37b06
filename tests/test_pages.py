"""The API page is current, and the notebook page runs."""

import importlib.machinery
import importlib.util
import re
from pathlib import Path

import pytest

from paceline.cli.main import COMMANDS
from paceline.study import StudySettings

ROOT = Path(__file__).parents[1]
NOTEBOOK = (ROOT / "docs" / "guides" / "notebook.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", NOTEBOOK, flags=re.DOTALL)


def test_the_api_page_is_current():
    loader = importlib.machinery.SourceFileLoader("api_docs", str(ROOT / "script" / "api-docs"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("api_docs", loader))
    loader.exec_module(module)
    page = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    assert page == module.page(), "run script/api-docs"


def test_the_command_line_page_lists_every_command():
    page = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `([a-z]+)` \|", page, flags=re.MULTILINE)) == set(COMMANDS)


def test_the_notebook_predicts_as_printed(capsys):
    names = {}
    for block in blocks("python"):
        if "measure(" not in block and "study" not in block:
            exec(block, names)
    assert "samples/s" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.torch
def test_the_notebook_measures_as_printed(capsys, tmp_path):
    names = {}
    exec("import paceline as pl", names)
    for block in blocks("python"):
        if "study" in block:
            exec(block, names)
    assert "2 processes" in capsys.readouterr().out
    assert (tmp_path / "page.html").exists()


def test_the_study_file_of_the_notebook_is_valid(tmp_path):
    (text,) = blocks("toml")
    (tmp_path / "small.toml").write_text(text)
    assert StudySettings.read(tmp_path / "small.toml").processes == ((1, 1), (1, 2))
