"""report, explain, calibrate and predict from a store with known launches."""

import json
from pathlib import Path

import pytest
from builders import a_launch, comparison_launches, keep, keep_profile, study_launches
from click.testing import CliRunner

from commandline import next_commands, run
from paceline.cli.main import cli
from paceline.errors import InputError
from paceline.store import Outcome, Status, Store

HERE = ["--store", "own.db"]


@pytest.fixture(autouse=True)
def _store(tmp_path):
    with Store(tmp_path / "own.db") as store:
        keep(store, study_launches("mine"))
        keep(store, comparison_launches("both"))
        keep_profile(store)


def document(*words):
    return json.loads(run([*words, *HERE, "--json"]))


def test_report_writes_the_page_and_the_same_facts_as_json(tmp_path):
    assert "Report: mine.html" in run(["report", "mine", *HERE])
    assert "Where the time goes" in (tmp_path / "mine.html").read_text()
    found = document("report", "mine", "--out", "p.html", "--nodes", "4", "--link", "ib_edr_100g")
    assert found["schema"] == "paceline/report/1"
    assert found["report"] == "p.html"
    assert [one["label"] for one in found["comparisons"]] == ["2 processes", "4 nodes, ib_edr_100g"]
    assert found["comparisons"][0]["measured_samples_per_second"] == pytest.approx(128 / 1.25)
    assert found["waterfall"][0]["seconds"] == pytest.approx(0.91)


def test_report_of_a_comparison_ranks_every_framework(tmp_path):
    found = document("report", "both")
    assert [ranking["processes"] for ranking in found["rankings"]] == [1, 2]
    assert [row["name"] for row in found["rankings"][0]["frameworks"]] == ["jax", "torch-ddp"]
    page = (tmp_path / "both.html").read_text()
    assert "Throughput by framework" in page


def test_explain_prints_seconds_by_cause():
    text = run(["explain", "mine", *HERE])
    assert "2 processes (phases timed)\n340 ms of 1.30 s are unattributed." in text
    assert "Levels: one process alone 1.00 s; 2 processes without communication +100 ms" in text
    assert "Instrumented launches, compared with plain ones: +50.0 ms (1 of 1.30 s" in text
    found = document("explain", "mine")
    assert found["measured_step_seconds"] == pytest.approx(1.25)
    assert found["observed_step_seconds"] == pytest.approx(1.3)
    assert found["instrumented_difference_seconds"] == pytest.approx(0.05)
    assert found["efficiency"] == pytest.approx(0.91 / 1.3)
    causes = {item["label"]: item["seconds"] for item in found["waterfall"]}
    assert causes["exposed all-reduce"] == pytest.approx(0.05)
    assert causes["unattributed"] == pytest.approx(0.34)
    assert sum(causes.values()) == pytest.approx(1.3)
    other = document("explain", "both", "--framework", "torch-ddp", "--processes", "2")
    assert other["measured_step_seconds"] == pytest.approx(2**0.1 * 1.01)


def test_a_failed_first_launch_is_ignored(tmp_path):
    """A first try of ``run`` that failed knows neither its framework nor its batch."""
    failed = Outcome(Status.FAILED, "2026", "ValueError: RANK is not set")
    tried = a_launch(
        "a0", "own", framework="command", world_size=1, batch_per_rank=1, outcome=failed
    )
    with Store(tmp_path / "own.db") as store:
        keep(store, [tried, *study_launches("own", prefix="o")])
    assert document("explain", "own")["measured_step_seconds"] == pytest.approx(1.25)
    assert "rankings" not in document("report", "own")
    page = (tmp_path / "own.html").read_text()
    assert "frameworks" not in page.partition("Environment")[0]
    assert "64 samples per process" in page
    settings = {one["name"]: one for one in document("compare", "mine", "own")["settings"]}
    assert not {"framework", "batch_per_process", "processes"} & settings.keys()


def test_calibrate_fits_the_requested_model():
    found = document("calibrate", "--model", "resnet44")["fit"]
    assert (found["model"], found["batch"], found["framework"]) == ("resnet44", 64, "torch-ddp")
    assert "predictions here" in run(["calibrate", *HERE])


def test_predict_without_a_cluster_uses_launches_of_this_machine():
    with Store(Path("alone.db")) as store:
        keep(store, study_launches("mine"))
        keep_profile(store)
    text = run(["predict", "--model", "resnet44", "-j", "1x2", "--store", "alone.db"])
    assert "2 processes" in text
    words = ["predict", "--model", "resnet44", "--store", "alone.db", "--json"]
    (here,) = json.loads(run([*words, "-j", "1x2"]))["comparisons"]
    assert here["measured_samples_per_second"] == pytest.approx(128 / 1.25)
    assert here["sharing_seconds"] == pytest.approx(0.1)
    (there,) = json.loads(run([*words, "--nodes", "4", "--link", "eth_10g"]))["comparisons"]
    assert there["workers"] == 4


@pytest.mark.parametrize("name", ["report", "explain"])
def test_a_missing_study_is_an_error_that_lists_the_others(name):
    with pytest.raises(InputError, match="no study named 'none'") as caught:
        run([name, "none", *HERE])
    assert "both, mine" in caught.value.hint


def test_lists_have_a_framework_column_if_frameworks_differ():
    assert "jax" in run(["study", "list", "--launches", *HERE])
    assert "torch-ddp" not in run(["study", "show", "mine", *HERE])
    with pytest.raises(InputError, match="no study is named 'none'"):
        run(["study", "show", "none", *HERE])


@pytest.mark.usefixtures("quick_framework")
def test_measure_exits_with_1_if_no_launch_finished():
    words = [
        "measure",
        "--framework",
        "quick",
        "--model",
        "resnet20",
        "--launches",
        "1",
        "--timeout",
        "1ms",
    ]
    answer = CliRunner().invoke(cli, words)
    assert answer.exit_code == 1
    assert "timed out" in answer.stderr
    assert "paceline explain" not in answer.stdout, "there is nothing to explain"
    for line in next_commands(answer.stdout):
        run(line)


def test_an_omitted_study_is_the_only_one_of_the_store(tmp_path):
    with Store(tmp_path / "one.db") as store:
        keep(store, study_launches("mine"))
    answer = CliRunner().invoke(cli, ["explain", "--store", "one.db"], catch_exceptions=False)
    assert answer.stderr.startswith("using study mine, the only one in the store")
    assert answer.stdout == run(["explain", "mine", "--store", "one.db"])
    assert "Report: mine.html" in run(["report", "--store", "one.db"])


@pytest.mark.parametrize("line", ["explain", "report", "study rerun", "study show", "compare mine"])
def test_a_store_of_several_studies_needs_a_name(line):
    with pytest.raises(InputError, match="missing argument") as caught:
        run([*line.split(), *HERE])
    assert caught.value.hint == "name a study (newest first): both, mine"


def test_delete_needs_the_name_of_the_study(tmp_path):
    with Store(tmp_path / "one.db") as store:
        keep(store, study_launches("mine"))
    with pytest.raises(InputError, match="missing argument"):
        run(["study", "delete", "--yes", "--store", "one.db"])


def test_an_empty_store_is_an_error(tmp_path):
    with Store(tmp_path / "none.db"):
        pass
    with pytest.raises(InputError, match="contains no study"):
        run(["explain", "--store", "none.db"])
