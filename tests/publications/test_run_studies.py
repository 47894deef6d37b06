"""Published studies done on this machine: what can run, what is left out, and the pages."""

import re
from pathlib import Path

import pytest
from builders import comparison_launches, keep, keep_profile, study_launches, timed_launch

import paceline
from commandline import next_commands, run, try_out
from paceline.errors import EnvironmentUnusableError, PacelineError
from paceline.publications import run_studies
from paceline.publications.dp_vs_tp import compare_dp_tp, crossover_batch
from paceline.publications.publication import MeasuredPart, published_studies
from paceline.publications.run_studies import planned_part, study_settings
from paceline.publications.site.measured_section import without_paths
from paceline.store import Store
from paceline.workload import zoo

PARTS = [part for study in published_studies() for part in study.measured]


def planned(name, store):
    return planned_part(next(part for part in PARTS if part.study == name), store)


@pytest.fixture
def only_torch(monkeypatch):
    """A machine on which nothing but PyTorch is installed."""

    def check(wanted):
        if wanted.environment != "torch":
            raise EnvironmentUnusableError("not here", "install it")

    monkeypatch.setattr(run_studies, "check_runnable", check)


@pytest.fixture
def launched(tmp_path):
    """A store in which studies A, C and E have run in their short forms."""
    path = tmp_path / "own.db"
    digits = {"factors": {}, "position": 0}
    with Store(path) as store:
        keep(store, comparison_launches("ccgrid2020-short", (("mxnet", 0.5), ("torch-ddp", 1.0))))
        keep(store, study_launches("erad2021-phases-short", prefix="p", job=digits))
        keep(store, both_ways("pdp2021-short"))
        keep_profile(store)
    return path


def both_ways(study):
    """Tensor parallelism takes 1 s whatever the batch, data parallelism half of it and twice it."""
    graph = zoo.build("fcn5").to_json()
    return [
        timed_launch(
            f"{study}{framework}{share}",
            *[[seconds] * 4] * 2,
            study=study,
            model="fcn5",
            framework=framework,
            batch_per_rank=share,
            job={"graph": graph, "position": 0},
        )
        for share, by_framework in (
            (8, {"torch-ddp": 2.0, "torch-tp": 1.0}),
            (128, {"torch-ddp": 0.5, "torch-tp": 1.0}),
        )
        for framework, seconds in by_framework.items()
    ]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.study)
def test_every_study_file_is_valid_and_its_short_form_smaller(part):
    whole, short = study_settings(part), study_settings(part, short=True)
    assert whole.points
    assert short.most_seconds < whole.most_seconds
    assert short.launches < whole.launches


def test_all_studies_fit_into_their_time_budget():
    def seconds(short):
        return sum(study_settings(part, short).most_seconds for part in PARTS)

    assert seconds(short=False) <= 38 * 60
    assert seconds(short=True) <= 7 * 60


def test_missing_frameworks_are_skipped_and_reported(only_torch, tmp_path):
    part = planned("ccgrid2020", tmp_path / "own.db")
    assert part.study.settings.frameworks == ("torch-ddp",)
    assert part.missing["mxnet"] == "paceline frameworks install mxnet"


def test_a_part_without_required_frameworks_has_a_reason(only_torch, tmp_path):
    horovod = planned("erad2021-horovod", tmp_path / "own.db")
    assert horovod.study is None
    assert horovod.reason == "horovod-torch is not installed"
    assert horovod.result(tmp_path / "own.db").analysis is None


def test_without_root_the_lab_part_is_skipped(only_torch, tmp_path, monkeypatch):
    monkeypatch.setattr("paceline.launch.lab_launcher.missing_for_lab", lambda: "become root")
    lab = planned("pdp2021-lab", tmp_path / "own.db")
    assert lab.study is None
    assert "become root" in lab.reason
    assert planned("pdp2021", tmp_path / "own.db").study is not None


def test_parts_that_cannot_run_have_a_reason(only_torch, tmp_path, monkeypatch):
    def refuse(settings, run_here=True):
        raise PacelineError("2 processes need 2 cores, and there is 1", "take fewer")

    monkeypatch.setattr(run_studies.StudySettings, "design", refuse)
    found = planned_part(PARTS[0], tmp_path / "own.db")
    assert found.study is None
    assert "there is 1 (take fewer)" in found.reason


def test_both_plans_are_predicted_with_their_crossover(launched):
    with Store(launched) as store:
        compared = compare_dp_tp(store.launches("pdp2021-short"), None)
    assert [(one.batch, one.measured_ratio) for one in compared] == [(16, 0.5), (256, 2.0)]
    assert compared[0].predicted_ratio is None
    assert crossover_batch([16, 256], [0.5, 2.0]) == pytest.approx(64.0)
    assert crossover_batch([16, 256], [2.0, 3.0]) is None


def test_the_site_has_a_page_for_each_study_and_one_table_of_all(launched, only_torch):
    output = run(f"paceline reproduce --site pages --short --store {launched.name}")
    pages = {path.name: path.read_text(encoding="utf-8") for path in Path("pages").iterdir()}
    assert sorted(pages) == sorted(
        ["index.html", *(f"{study.name}.html" for study in published_studies())]
    )
    assert "10.11" in pages["index.html"]
    assert "Crossover batch of data parallelism" in pages["index.html"]
    assert "paceline frameworks install keras" in pages["ccgrid2020.html"]
    assert "Phases by time and rank" in pages["erad2021.html"]
    for command in next_commands(output):
        try_out(command)


def test_pages_contain_no_local_path_and_only_links_between_them(launched, only_torch):
    run(f"paceline reproduce A E --site pages --short --store {launched}")
    for page in Path("pages").iterdir():
        text = page.read_text(encoding="utf-8")
        assert str(launched.parent) not in text
        assert str(Path(paceline.__file__).parent) not in text
        assert str(Path.home()) + "/" not in text
        links = re.findall(r'(?:href|src)="([^"#]+)', text)
        assert all(Path("pages", link).is_file() for link in links), links


def test_reasons_contain_file_names_without_directories():
    assert without_paths("cannot read '/mnt/data/x.npz' (give 1/2)") == (
        "cannot read 'x.npz' (give 1/2)"
    )


def test_existing_launches_are_not_repeated(monkeypatch, quick_framework, tmp_path):
    path = tmp_path / "own.db"
    part = MeasuredPart("erad2021-phases", "quick", {})
    settings = study_settings(part)
    quick = settings.of(model="resnet20", batch=4, frameworks="quick", launches=1, steps=2)
    monkeypatch.setattr(run_studies, "study_settings", lambda part, short: quick)
    with Store(path) as store:
        keep_profile(store)
    told = []
    for _ in range(2):
        planned = planned_part(part, path)
        run_studies.run_parts([planned], path, on_launch=told.append)
    assert len(told) == len(planned.study.launches) == 1


def test_short_without_run_is_one_line_with_a_hint():
    with pytest.raises(PacelineError, match="require --run or --site") as caught:
        run("paceline reproduce --short")
    assert "--run" in caught.value.hint


@pytest.mark.slow
@pytest.mark.torch
def test_study_d_runs_in_its_short_form_and_resumes(tmp_path):
    (found,) = paceline.reproduce("D", run=True, short=True, store="own.db", site="pages")
    (part,) = found.measured
    before = len(part.analysis.launches)
    assert before >= 1, "as many as its time allows"
    (again,) = paceline.reproduce("D", run=True, short=True, store="own.db")
    assert len(again.measured[0].analysis.launches) == before
    assert "cores busy" in Path("pages/icdcs2017.html").read_text(encoding="utf-8")
