"""Everything that the commands do, from Python."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest
from builders import keep, study_launches

import paceline as pl
from paceline.errors import InputError
from paceline.store import Store


def test_every_name_is_there_documented_and_typed():
    for name in pl.__all__:
        found = getattr(pl, name)
        if name == "__version__":
            continue
        assert inspect.getdoc(found), name
        if inspect.isfunction(found):
            assert found.__module__.startswith("paceline."), name
            hints = found.__annotations__
            assert "return" in hints, name
            for parameter in inspect.signature(found).parameters:
                assert parameter in hints, f"{name}({parameter})"


@pytest.mark.process
def test_functions_stay_functions_whatever_is_imported_before():
    script = (
        "import paceline, paceline.predictor.predict, paceline.measurement.study_runner\n"
        "import inspect; assert inspect.isfunction(paceline.predict), paceline.predict\n"
        "assert inspect.isfunction(paceline.measure)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_prediction_takes_names_or_objects():
    by_name = pl.predict("resnet50", "dgx-1", nodes=4, batch=64)
    workload = pl.Workload.of("resnet50", 64)
    by_object = pl.predict(workload, by_name.cluster, pl.Plan(dp=32))
    assert by_object.step_seconds == pytest.approx(by_name.step_seconds)
    assert by_name.devices == 32
    assert len(repr(by_name)) < 2000
    assert "samples/s" in str(by_name)
    assert "<table" in by_name._repr_html_()


def test_a_prediction_takes_the_plan_in_keywords():
    found = pl.predict(
        "gpt3_6.7b",
        "dgx-a100",
        nodes=4,
        global_batch=64,
        seq=1024,
        precision="bf16",
        tp=4,
        pp=4,
        micro_batch=2,
        recompute="full",
        bucket="50MiB",
    )
    assert (found.plan.dp, found.plan.tp, found.plan.pp) == (2, 4, 4)
    assert found.workload.batch == 32
    assert found.plan.synchronisation.bucket_bytes == 50 * 2**20


def test_processes_are_counted_on_each_node():
    found = pl.predict("resnet50", "dgx-1", nodes=2, processes=4)
    assert (found.cluster.nodes, found.cluster.devices_per_node) == (2, 4)
    alone = pl.predict("resnet50", device="v100", batch=8)
    assert alone.devices == 1


SCALED = {"tp": 2, "global_batch": 64, "precision": "bf16", "zero": 1, "micro_batch": 4}


def test_a_measured_node_is_scaled_out():
    on_one = {**SCALED, "global_batch": 16}
    node = pl.predict("gpt2_medium", "dgx-a100", nodes=1, **on_one)
    slower = 1.3 * node.step_seconds
    measured = {"measured_step": slower, "measured_on": "1x8"}
    again = pl.predict("gpt2_medium", "dgx-a100", nodes=1, **on_one, **measured)
    assert again.step_seconds == pytest.approx(slower, rel=1e-3)
    four = pl.predict("gpt2_medium", "dgx-a100", nodes=4, **SCALED, **measured)
    assert slower < four.step_seconds < 1.5 * slower
    cold = pl.predict("gpt2_medium", "dgx-a100", nodes=4, **SCALED)
    assert four.relative_error < cold.relative_error


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"measured_on": "1x8"}, "needs --measured-step"),
        ({"measured_on": "1x1", "measured_step": "1s"}, "a replica needs 2"),
        ({"measured_on": "1x8", "measured_step": "1ms"}, "shorter than its arithmetic"),
    ],
)
def test_impossible_measured_nodes_are_refused(options, problem):
    with pytest.raises(InputError, match=problem):
        pl.predict("gpt2_medium", "dgx-a100", nodes=4, **SCALED, **options)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            {"model": "resnet50", "cluster": "dgx-1", "node": 4},
            "predict has no option 'node'. Did you mean nodes",
        ),
        ({"model": "resnet50"}, "no launch of 'resnet50' on this machine"),
        ({"model": "resnet50", "cluster": "dgx-1", "device": "v100"}, "mutually exclusive"),
        ({"model": "resnet50", "cluster": "dgx-1", "batch": 0}, "batch must be an integer from 1"),
        ({"model": None, "cluster": "dgx-1"}, "no model given"),
        (
            {"model": "resnet50", "cluster": "dgx-1", "batch": 8, "global_batch": 8},
            "--batch and --global-batch are mutually exclusive",
        ),
    ],
)
def test_mistakes_are_errors_with_a_hint(arguments, words):
    with pytest.raises(pl.PacelineError, match=words) as caught:
        pl.predict(**arguments)
    assert caught.value.hint


@pytest.mark.parametrize("step", ["100ms", "0.47s"])
def test_a_measured_step_above_the_peak_is_refused(step):
    """8.03 B parameters, 8192 tokens: 475 TFLOP, 0.48 s at the 989 TFLOP/s of an H100."""
    job = {"batch": 1, "precision": "bf16", "nodes": 1, "zero": 3}
    with pytest.raises(InputError, match=r"arithmetic at peak: .* h100_sxm_80gb \(989 TFLOP/s\)"):
        pl.predict("llama3_8b", "dgx-h100", measured_step=step, **job)
    found = pl.predict("llama3_8b", "dgx-h100", measured_step="1s", **job)
    assert 0.4 < found.utilisation < 0.5


def test_whatif_sweep_and_advise_print_themselves():
    found = pl.whatif("resnet50", "hkbu-v100-pcie", nodes=4)
    assert found.base.step_seconds == pytest.approx(
        pl.predict("resnet50", "hkbu-v100-pcie", nodes=4).step_seconds
    )
    assert "Faster resources" in str(found)
    swept = pl.sweep("alexnet", "knl-opa", {"nodes": [2, 4, 8]}, batch=16, compare="dp")
    assert swept.seconds["dp"].shape == (3,)
    advised = pl.advise("resnet50", "dgx-1", nodes=[1, 2], global_batch=256)
    assert advised.best[0].samples_per_step == 256
    assert "vs best" in str(advised)


def test_studies_are_explained_and_calibrated_by_name(tmp_path):
    path = tmp_path / "own.db"
    with Store(path) as store:
        keep(store, study_launches("mine"))
    explanation = pl.explain("mine", store=path)
    assert explanation.efficiency == pytest.approx(0.91 / 1.3)
    assert "910 ms of 1.30 s is compute" in str(explanation)
    assert "<pre>" in explanation._repr_html_()
    fit = pl.calibrate("resnet44", probe=False, store=path).fit
    assert fit is not None
    assert fit.batch == 64


def test_launches_of_another_device_are_not_taken_for_evidence_of_this_one(tmp_path):
    path = tmp_path / "own.db"
    with Store(path) as store:
        keep(store, study_launches("mine"))
    study = pl.Study.load("mine", path)
    found = pl.predict("resnet44", "dgx-1", nodes=4, evidence=study)
    assert any("study mine" in note for note in found.notes)


def test_a_study_writes_its_page(tmp_path):
    path = tmp_path / "own.db"
    with Store(path) as store:
        keep(store, study_launches("mine"))
    page = pl.Study.load("mine", path).report(tmp_path / "page.html")
    assert isinstance(page, Path)
    assert "Where the time goes" in page.read_text()


def test_a_pipeline_sends_one_sample_at_a_time_unless_told():
    job = {"nodes": 1, "pp": 4, "batch": 8, "precision": "fp16", "seq": 128}
    said = pl.predict("gpt2_small", "dgx-1", micro_batch=1, **job)
    unsaid = pl.predict("gpt2_small", "dgx-1", **job)
    assert unsaid.step_seconds == said.step_seconds
    assert "batch 8 x 128 tokens in 8 micro-batches of 1" in str(unsaid)


def test_a_rate_states_the_network_of_a_device():
    place = {"device": "v100_sxm2_16gb", "nodes": 2, "batch": 32}
    assert "network not stated" in str(pl.predict("resnet50", **place))
    assert "not stated" not in str(pl.predict("resnet50", link="10gbit", **place))
