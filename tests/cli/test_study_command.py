"""``paceline study``: checked, run, gone on with; what measures nothing exits with 1."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from commandline import next_commands, run
from paceline.cli.main import cli
from paceline.errors import PacelineError

STUDY = """
model = "resnet20"
frameworks = "quick"
launches = 2
steps = 3
warmup_steps = 1
[factors]
batch = [2, 4]
processes = [1, 2]
[design]
kind = "two-level"
"""


@pytest.fixture
def file(tmp_path, quick_framework):
    path = tmp_path / "small.toml"
    path.write_text(STUDY)
    return path


def test_a_file_is_checked_run_and_gone_on_with(file):
    checked = run("paceline study check small.toml")
    assert "4 combinations, 8 launches: at most 4,800 s" in checked
    assert "varied" in checked
    (then,) = next_commands(checked)
    assert then == "paceline study run small.toml"
    output = run(then)
    assert "Study small: 8 launches" in output
    assert "Effects on seconds per sample" in output
    assert "the study is complete" in run("paceline study check small.toml")
    file.write_text(STUDY.replace("[2, 4]", "[2, 4, 8]").replace("two-level", "full"))
    document = json.loads(run("paceline study check small.toml --json"))
    assert (document["launches"], document["made"]) == (12, 8)
    assert document["seconds"] > 0, "launches tell how long one takes"
    document = json.loads(run("paceline study run small.toml --json"))
    assert len(document["launches"]) == 12
    assert document["ended"]["by"] == "design"


def test_aliases_are_printed(file):
    text = STUDY.replace(
        '"two-level"', '"fractional"\ngenerators = ["threads = batch * processes"]'
    )
    text = text.replace("[factors]", "oversubscribe = true\n[factors]\nthreads = [1, 2]")
    file.write_text(text)
    output = run("paceline study check small.toml")
    assert "Resolution 3. Aliased effects:" in output
    assert "threads = batch x processes" in output


def test_what_measures_nothing_exits_with_one(file, monkeypatch):
    from measurement import quick

    from paceline.frameworks.framework_registry import frameworks

    broken = replace(quick.ADAPTER, worker=file)
    monkeypatch.setitem(frameworks(), "quick", broken)
    answer = CliRunner().invoke(cli, ["study", "run", "small.toml"], standalone_mode=False)
    assert answer.exit_code == 1
    assert answer.output.count("failed: ") == 8, "each combination is tried twice and given up"


def test_a_launcher_s_name_is_passed_through(file):
    with pytest.raises(PacelineError, match="no launcher named 'rocket'"):
        run("paceline study run small.toml --launcher rocket")


def test_the_schema_is_json():
    assert json.loads(run("paceline study schema"))["title"] == "Paceline study"
