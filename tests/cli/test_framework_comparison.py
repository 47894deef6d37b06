import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from paceline.cli.main import cli
from paceline.errors import InputError
from paceline.frameworks.framework_registry import frameworks
from paceline.store import Store


@pytest.fixture
def _other(monkeypatch, quick_framework):
    monkeypatch.setitem(frameworks(), "other", replace(quick_framework, name="other"))


def run(*words):
    sizes = ["--model", "resnet20", "--batch", "4", "--steps", "2", "--launches", "2"]
    return CliRunner().invoke(cli, ["measure", *sizes, *words], catch_exceptions=False)


@pytest.mark.usefixtures("_other")
def test_frameworks_without_parity_are_rejected():
    """The quick worker's losses are all 1 and it has no parameters."""
    with pytest.raises(
        InputError, match="reproduces the reference training of resnet20: quick: 0 par"
    ):
        run("--framework", "quick,other")


@pytest.mark.usefixtures("_other")
def test_frameworks_with_parity_are_ranked_with_a_figure(tmp_path, monkeypatch):
    monkeypatch.setattr("paceline.analysis.parity.PARITY_TOLERANCE", 10.0)
    monkeypatch.setattr("paceline.analysis.parity.last_event", lambda *_: {"parameters": 269722})
    figure = tmp_path / "figure.svg"
    answer = run("--framework", "quick,other", "--figure", str(figure), "--json")
    document = json.loads(answer.stdout)
    assert document["schema"] == "paceline/measure/1"
    assert [row["same"] for row in document["parity"]["frameworks"]] == [True, True]
    (ranking,) = document["rankings"]
    assert {row["name"] for row in ranking["frameworks"]} == {"quick", "other"}
    assert ranking["pairs"][0]["ratio"] == pytest.approx(1.0)
    assert not ranking["pairs"][0]["different"]
    drawn = figure.read_text()
    assert drawn.startswith("<svg")
    assert "<style>" in drawn, "a file of its own needs its style inside"


@pytest.mark.usefixtures("_other")
def test_the_parity_test_omits_dropout_but_launches_do_not(tmp_path, monkeypatch):
    monkeypatch.setattr("paceline.analysis.parity.LARGEST_REFERENCE_PARAMETERS", 0)
    monkeypatch.setattr("paceline.analysis.parity.last_event", lambda *_: {"parameters": 61100840})
    path = tmp_path / "store.db"
    where = ["--store", str(path), "--study", "mine", "--figure", str(tmp_path / "figure.svg")]
    answer = run("--framework", "quick,other", "--model", "alexnet", *where)
    assert "Expected parameters: 61100840" in " ".join(answer.stdout.split())
    assert "Trained without dropout" in " ".join(answer.stdout.split())
    with Store(path) as store:
        kinds = {
            study: {
                node["op"] for one in store.launches(study) for node in one.job["graph"]["nodes"]
            }
            for study in ("mine-parity", "mine")
        }
    assert kinds["mine"] - kinds["mine-parity"] == {"dropout"}


def test_an_empty_name_is_rejected():
    with pytest.raises(InputError, match="no framework given"):
        run("--framework", " , ")
