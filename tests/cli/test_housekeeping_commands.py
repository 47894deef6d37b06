"""study, compare and doctor --noise: output and exit codes."""

import json

import numpy as np
import pytest
from builders import a_launch, keep
from click.testing import CliRunner

from commandline import next_commands, run, try_out
from paceline.cli.main import cli
from paceline.errors import PacelineError
from paceline.measurement.study_design import Design
from paceline.measurement.study_runner import run_study
from paceline.store import Outcome, RankSteps, Status, Store


def launches(name, mean, count=6, **changes):
    random = np.random.default_rng(len(name))
    return [
        a_launch(
            f"{name}{number}",
            study=name,
            world_size=1,
            outcome=Outcome(
                Status.FINISHED,
                "",
                ranks=(RankSteps(0, (9.0, mean * float(np.exp(random.normal(0, 0.005))))),),
            ),
            **changes,
        )
        for number in range(count)
    ]


@pytest.fixture(autouse=True)
def _stores(tmp_path):
    with Store(tmp_path / "own.db") as store:
        keep(store, launches("before", 1.0))
        keep(store, launches("after", 1.1, job={"position": 0, "bucket_bytes": None}))
        keep(store, launches("same one", 1.0))
    with Store(tmp_path / "other.db") as store:
        keep(store, launches("theirs", 2.0))


def exit_code(line):
    return CliRunner().invoke(cli, line.split(), standalone_mode=False).exit_code


def test_studies_are_listed_renamed_annotated_merged_and_deleted():
    output = run("paceline study list --store own.db")
    assert "3 studies" in output
    for line in next_commands(output):
        try_out(line)
    run(["study", "rename", "same one", "twin", "--store", "own.db"])
    run(["study", "annotate", "twin", "new kernel", "--store", "own.db"])
    assert "Copied 6 launches" in run("paceline study merge other.db --store own.db")
    found = json.loads(run("paceline study list --store own.db --json"))["studies"]
    assert [one["name"] for one in found] == ["before", "after", "twin", "theirs"]
    assert found[2]["notes"] == ["new kernel"]
    with pytest.raises(PacelineError, match="6 launches; deletion is permanent"):
        run("paceline study delete twin --store own.db")
    assert "with 6 launches" in run("paceline study delete twin --yes --store own.db")
    with pytest.raises(PacelineError, match="no store"):
        run("paceline study rename a b --store nothing.db")


def test_a_regression_has_an_exit_code_and_a_table_for_a_pull_request(tmp_path):
    assert exit_code("compare before after --check --store own.db --markdown change.md") == 1
    text = (tmp_path / "change.md").read_text()
    assert text.startswith("### 1 of 1 configuration slower")
    assert "one campaign each: a regression cannot be distinguished" in text
    assert exit_code("compare after before --check --store own.db") == 0
    assert exit_code("compare before after --check --threshold 20% --store own.db") == 0
    output = run(["compare", "before", "same one", "--check", "--store", "own.db"])
    assert "0 of 1 configuration slower" in output
    for line in next_commands(output):
        try_out(line)
    document = json.loads(run("paceline compare after before --check --store own.db --json"))
    assert document["changes"][0]["verdict"] == "faster"
    with pytest.raises(PacelineError, match="no study is named 'never'"):
        run("paceline compare before never --check --store own.db")


def test_compare_prints_settings_before_step_times(tmp_path):
    output = run(["compare", "before", "same one", "--store", "own.db"])
    assert "Settings, machine and versions are identical." in output
    output = run("paceline compare before after --store own.db")
    assert "bucket_bytes" in output
    assert output.index("bucket_bytes") < output.index("verdict")
    assert "inconclusive" in run("paceline compare before0 after1 --store own.db")
    for name, batch in (("a.json", 32), ("b.json", 64)):
        text = run(f"paceline predict --model resnet50 --batch {batch} --cluster dgx-1 --json")
        (tmp_path / name).write_text(text)
    output = run("paceline compare a.json b.json")
    assert "b.json / a.json: " in output
    with pytest.raises(PacelineError, match="no study is named 'zzz'"):
        run("paceline compare before zzz --store own.db")
    (tmp_path / "c.json").write_text("[1]")
    with pytest.raises(PacelineError, match="is not a prediction"):
        run("paceline compare a.json c.json")


def test_rerun_repeats_a_study_or_a_launch(tmp_path, quick_framework):
    from measurement import quick

    with Store(tmp_path / "quick.db") as store:
        jobs = [quick.job(), quick.job(world_size=2)]
        first = run_study(store, "mine", Design.randomised(jobs, 2, 1))[0]
    output = run("paceline study rerun mine --store quick.db")
    assert "Study mine-rerun: 4 launches" in output
    for line in next_commands(output):
        try_out(line)
    assert "Study once: 2 launches" in run(
        f"paceline study rerun {first.id} --launches 2 --study once --store quick.db"
    )
    with pytest.raises(PacelineError, match="recorded or imported, not measured"):
        run("paceline study rerun before --store own.db")


def test_doctor_noise_runs_an_aa_test(tmp_path, quick_framework):
    output = run(
        "paceline doctor --noise --framework quick --model resnet20 --batch 2 --launches 3"
        " --steps 2 --study self --store quick.db"
    )
    assert "A/A test: no false positive (p = 1.000, significance level 0.05)." in output
    assert "Detectable change with 3 launches per group, interleaved: 0 % (power 0.8)" in output
    assert "Consecutive groups of 3 launches: significantly different in 0 % of 1 case" in output
    with pytest.raises(PacelineError, match="A/A test needs a single configuration"):
        run("paceline doctor --noise --framework quick --model resnet20 --batch 2 -j 1x1,1x2")
