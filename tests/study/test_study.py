"""A study as an object: from Python or TOML, run, resumed, loaded, analysed, reported."""

from dataclasses import replace

import pytest
from builders import comparison_launches, keep, keep_profile, study_launches

from paceline.analysis.parity_result import Parity, ParityTable
from paceline.errors import InputError, UnknownNameError
from paceline.render.html_page import render
from paceline.report.study_page import study_page
from paceline.store import Store
from paceline.study import Study, StudySettings
from paceline.study.demo_study import Demonstration


@pytest.fixture
def quick_settings(quick_framework):
    return {"batch": 4, "processes": [1, 2], "frameworks": "quick", "launches": 2, "steps": 2}


def test_settings_are_written_as_people_write_them():
    settings = StudySettings.of(processes="1x1,1x2", frameworks="torch-ddp, jax", batch=8)
    assert settings.processes == ((1, 1), (1, 2))
    assert settings.frameworks == ("torch-ddp", "jax")
    assert StudySettings.of(processes=[1, "1x2"]).processes == settings.processes


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"batches": 3}, r"a study has no option 'batches'\. Did you mean batch"),
        ({"batch": "64"}, "batch must be an integer from 1 to"),
        ({"frameworks": " , "}, "no framework given"),
        ({"order": "sorted"}, "order must be one of random"),
        ({"processes": [0]}, "topology '0' has no processes"),
    ],
)
def test_mistakes_are_refused_before_anything_runs(values, words):
    with pytest.raises((InputError, UnknownNameError), match=words):
        StudySettings.of(**values)


def test_a_study_file_says_the_same_as_keywords(tmp_path):
    file = tmp_path / "small.toml"
    file.write_text('model = "resnet20"\nbatch = 4\nprocesses = [1, 2]\nno_sync = true\n')
    study = Study.read(file)
    assert study.name == "small"
    assert study.settings == StudySettings.of(
        model="resnet20", batch=4, processes=[1, 2], no_sync=True
    )
    file.write_text('batch = "many"\n')
    with pytest.raises(InputError, match=r"small\.toml, line 1: batch must be an integer"):
        Study.read(file)


def test_jobs_are_every_place_with_every_instrument(quick_settings):
    settings = StudySettings.of(model="resnet20", no_sync=True, **quick_settings)
    jobs = [(job.world_size, job.synchronise) for job in settings.jobs()]
    assert jobs == [(1, True), (2, True), (2, False)]
    given = StudySettings.of(model="resnet20", order="given", **quick_settings)
    assert given.design().order == (0, 1, 0, 1)


def test_a_study_runs_is_loaded_and_prints_itself(quick_settings, tmp_path):
    path = tmp_path / "own.db"
    study = Study("resnet20", name="it", store=path, **quick_settings).run()
    assert repr(study) == "<Study it: resnet20, 4 of 4 launches finished>"
    same = Study.load("it", path)
    assert [group.first.world_size for group in same.throughput()] == [1, 2]
    assert "samples/s" in str(same.throughput())
    assert "<table" in same._repr_html_()
    assert same.run().launches == study.launches, "nothing is left to run"
    with pytest.raises(InputError, match="a study named 'it' already exists"):
        Study("resnet20", name="it", store=path, **quick_settings).run()


def test_what_stopped_goes_on_where_it_stopped(quick_settings, tmp_path):
    path = tmp_path / "own.db"
    study = Study("resnet20", name="it", store=path, **quick_settings)

    def stop(progress):
        if progress.done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        study.run(on_launch=stop)
    assert len(study.launches) == 1
    assert len(study.run().launches) == 4


def test_a_study_that_is_not_there_is_said_with_those_that_are(tmp_path):
    path = tmp_path / "own.db"
    with Store(path) as store:
        keep(store, study_launches("mine"))
    with pytest.raises(InputError, match="no study named 'yours'") as caught:
        Study.load("yours", path)
    assert "mine" in caught.value.hint


def test_a_study_is_calibrated_predicted_compared_and_explained(tmp_path):
    path = tmp_path / "own.db"
    with Store(path) as store:
        keep(store, study_launches("mine"))
        keep_profile(store)
    analysis = Study.load("mine", path).analyse(nodes=[4], link="eth_10g")
    assert analysis.calibration.step.mean == pytest.approx(1.0)
    assert [one.prediction.devices for one in analysis.here] == [2]
    assert [one.label for one in analysis.elsewhere] == ["4 nodes, eth_10g"]
    assert analysis.explanation.efficiency == pytest.approx(0.7)
    assert not analysis.rankings
    assert len(repr(analysis)) < 120
    with pytest.raises(UnknownNameError, match="no link named 'pigeon'"):
        Study.load("mine", path).analyse(link="pigeon")


def test_the_demo_explains_plain_launches_and_times_messages_once(tmp_path):
    demo = Demonstration("resnet20", batch=4, launches=3, steps=2, seed=1, out=tmp_path)
    design = demo.settings.design()
    two = [design.jobs[place] for place in design.order if design.jobs[place].world_size == 2]
    kinds = [job.instrument for job in two if job.synchronise]
    assert (kinds.count("none"), kinds.count("phases")) == (6, 1)


def test_the_page_of_a_comparison_has_ranking_parity_and_figure_of_all(tmp_path):
    rows = tuple(Parity(name, 10, (2.0, 1.5), 1e-6) for name in ("jax", "torch-ddp"))
    other = Parity("mxnet", None, (), float("nan"), "its worker does not support an operation")
    parity = ParityTable("resnet44", "NumPy", (2.0, 1.5), 10, (*rows, other))
    path = tmp_path / "own.db"
    with Store(path) as store:
        keep(store, comparison_launches("both"))
        store.save_design("both", {"jobs": [], "order": [], "seed": 1, "parity": parity.to_json()})
    study = Study.load("both", path)
    analysis = study.analyse()
    assert analysis.parity.same == ["jax", "torch-ddp"]
    assert list(analysis.rankings) == [1, 2]
    assert analysis.rankings[2].names == ("jax", "torch-ddp")
    assert [one.measured.first.framework for one in analysis.explanations] == ["jax", "torch-ddp"]
    page = render(study_page(analysis))
    for words in (
        "frameworks compared",
        "tied with",
        "Parity on resnet44",
        "Throughput by framework",
        "left out: mxnet: its worker does not support an operation",
        "Where the time goes",
        "jax: 93% ideal",
        "torch-ddp: 93% ideal",
    ):
        assert words in page, words
    assert study.explain(framework="jax").measured.first.framework == "jax"
    with pytest.raises(UnknownNameError, match="no framework in study both named 'mxnet'"):
        study.explain(framework="mxnet")


def test_frameworks_are_compared_as_a_setting_or_a_factor():
    names = ["torch-ddp", "jax"]
    as_factor = StudySettings.of(factors={"framework": names, "batch": [8, 16]})
    assert as_factor.compared_frameworks == tuple(names)
    assert as_factor.compares_frameworks
    kept = replace(as_factor, factors={**as_factor.factors, "framework": [*names, "keras"]})
    assert kept.without_frameworks(names).factors["framework"] == names
    assert not StudySettings.of(factors={"batch": [8, 16]}).compares_frameworks
    both = StudySettings.of(factors={"framework": names, "model": ["fcn5", "resnet20"]})
    assert not both.compares_frameworks, "parity is that of one network"
    two_level = replace(as_factor, design_kind="two-level")
    with pytest.raises(InputError, match="jax failed the parity check"):
        two_level.without_frameworks(["torch-ddp"])
