"""What a browser may send: known names and numbers within bounds, nothing that is opened."""

import json
import re
import tempfile
from dataclasses import replace

import pytest

import paceline as pl
from paceline.errors import PacelineError
from paceline.explore.answers import answer, job_of
from paceline.explore.page import explorer_page
from paceline.explore.panels import panel
from paceline.explore.state import ExplorerState, state_of
from paceline.explore.uploads import Uploads
from paceline.predictor.search.api import Advised, advise
from paceline.spec.job_options import JobOptions
from paceline.spec.knob import knobs_of
from paceline.workload import zoo


@pytest.mark.parametrize(
    "given",
    [
        {"model": "/etc/passwd"},
        {"model": "x.py:make"},
        {"model": "config.json"},
        {"cluster": "/etc/passwd"},
        {"cluster": "lab.toml"},
        {"link": "400gbit"},
        {"model": "upload:1:nothing"},
        {"batch": -1},
        {"batch": 1e9},
        {"batch": True},
        {"nodes": "1; rm"},
        {"flops": float("nan")},
        {"flops": 1000},
        {"framework": "nope"},
        {"trace": "x.csv"},
        {"precision": ["fp32"]},
    ],
)
def test_what_is_not_known_is_refused(given):
    with pytest.raises(PacelineError):
        state_of(given, {})


def test_the_answer_is_that_of_predict_and_of_the_command():
    state = state_of({"model": "resnet50", "nodes": 4, "batch": 32, "link_rate": 0.25}, {})
    found = answer(job_of(state, {}))
    told = pl.predict("resnet50", "dgx-1", nodes=4, batch=32, scale="link=0.25")
    here = next(row for row in found["rows"] if row["nodes"] == 4)
    assert here["samples_per_second"] == pytest.approx(told.samples_per_second, rel=1e-9)
    assert (here["low"], here["high"]) == pytest.approx(told.samples_per_second_interval, rel=1e-9)
    assert found["command"] == (
        "paceline predict --model resnet50 --cluster dgx-1 --batch 32 --scale link=0.25 -j 4x8"
    )


@pytest.mark.parametrize(
    "choice",
    [
        {"recompute": "full"},
        {"recompute": "full", "zero": 3},
        {"framework": "megatron-lm"},
        {"framework": "torch-fsdp"},
    ],
)
def test_every_point_of_the_curve_is_the_answer_of_predict(choice):
    state = {"model": "gpt2", "cluster": "dgx-a100", "precision": "bf16", "batch": 4, "nodes": 4}
    for row in answer(job_of(state_of({**state, **choice}, {}), {}))["rows"][:3]:
        told = pl.predict(
            "gpt2", "dgx-a100", nodes=row["nodes"], batch=4, precision="bf16", **choice
        )
        assert row["samples_per_second"] == pytest.approx(told.samples_per_second, rel=1e-9)


def test_what_is_not_chosen_is_as_in_predict():
    state = state_of({"model": "llama3_8b", "cluster": "dgx-h100", "nodes": 2}, {})
    found = answer(job_of(state, {}))
    told = pl.predict("llama3_8b", "dgx-h100", nodes=2)
    assert (told.framework, told.workload.batch, told.workload.precision) == (
        "torch-fsdp",
        1,
        "bf16",
    )
    here = next(row for row in found["rows"] if row["nodes"] == 2)
    assert here["samples_per_second"] == pytest.approx(told.samples_per_second, rel=1e-9)
    assert found["memory"]["fits"] and found["notes"][0].startswith("chosen: FSDP over 16 devices")


@pytest.mark.parametrize("choice", [{"zero": 2}, {"tp": 2, "model": "gpt2_small"}])
def test_plans_that_have_to_be_scheduled_answer_too(choice):
    found = answer(job_of(state_of({"nodes": 4, "batch": 8, **choice}, {}), {}))
    assert {row["nodes"] for row in found["rows"]} >= {1, 2, 4, 8}


def test_a_replica_of_several_nodes_has_a_curve_over_those_that_it_fills():
    choice = {"model": "gpt2_small", "tp": 4, "pp": 6, "precision": "fp16", "batch": 12}
    found = answer(job_of(state_of({"nodes": 6, **choice}, {}), {}))
    assert [row["nodes"] for row in found["rows"]] == [3, 6, 12]


def test_an_uploaded_graph_is_data():
    uploads = Uploads()
    key = uploads.add("own.json", json.dumps(zoo.build("alexnet").to_json()).encode())
    found = answer(job_of(state_of({"model": key, "nodes": 2}, uploads), uploads))
    assert found["rows"]
    with pytest.raises(PacelineError, match=r"expected config\.json"):
        uploads.add("own.py", b"print('no')")
    for content in (b"{", b"[" * 100_000, b"\xff", b"{}", b'{"model_type": "nope"}'):
        with pytest.raises(PacelineError):
            uploads.add("own.json", content)


def config(**values):
    shape = {"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 2, "vocab_size": 100}
    return json.dumps({**shape, **values}).encode()


def test_a_name_of_an_upload_never_stands_for_two_models():
    uploads = Uploads()
    keys = [uploads.add("config.json", config(n_layer=n)) for n in range(1, 26)]
    assert len(set(keys)) == 25 and len(uploads) == 20
    assert uploads.add("config.json", config(n_layer=25)) == keys[-1]


@pytest.mark.parametrize("name", ["mine.json", "mine.onnx"])
def test_errors_name_an_upload_as_the_browser_does(name):
    pytest.importorskip("onnx")
    with pytest.raises(PacelineError, match="mine") as caught:
        Uploads().add(name, b'{"hidden_size": 64}')
    assert tempfile.gettempdir() not in caught.value.message + caught.value.hint


def test_a_json_file_that_is_too_large_is_not_parsed(monkeypatch):
    monkeypatch.delattr("paceline.explore.uploads.parsed_json")
    with pytest.raises(PacelineError, match="larger than 4 MB"):
        Uploads().add("config.json", b"[" + b"{}," * 2_000_000 + b"{}]")


def test_the_command_of_an_upload_asks_for_its_file():
    uploads = Uploads()
    key = uploads.add("config.json", config())
    state = state_of({"model": key, "nodes": 2}, uploads)
    assert state.command(8)[:4] == ["paceline", "predict", "--model", "FILE"]


def test_facts_have_three_significant_digits():
    found = answer(
        job_of(state_of({"model": "gpt2_xl", "cluster": "dgx-a100", "batch": 8}, {}), {})
    )
    for fact in found["facts"]:
        for number in re.findall(r"\d[\d,.]*\d", f"{fact['value']} {fact['note']}"):
            assert len(number.replace(",", "").replace(".", "").strip("0")) <= 3


def test_the_best_plans_are_listed_fastest_first(monkeypatch):
    def simplest_first(*words, **named):
        found = advise(*words, **named).searches[0]
        advice = replace(found.advice, best=found.advice.best[::-1], close=3)
        return Advised((replace(found, advice=advice),))

    monkeypatch.setattr("paceline.explore.panels.advise", simplest_first)
    choice = {"model": "gpt2_small", "cluster": "dgx-a100", "nodes": 2, "batch": 8}
    html = panel("plans", job_of(state_of(choice, {}), {}))["html"]
    steps = [int(step) for step in re.findall(r">\s*(\d+) \[", html)]
    assert len(steps) > 2 and steps == sorted(steps)
    assert html.startswith("<p>Fastest first. 3 plans are within the error margin")


def test_defaults_are_a_state_themselves():
    assert state_of({}, {}) == ExplorerState()


def test_the_form_has_a_field_for_every_option_that_opens_no_file():
    page = explorer_page()
    names = set(re.findall(r'name="([a-z_]+)"', page))
    left_out = {"trace", "allreduce_curve", "input", "topology", "device", "scale"}
    left_out |= {"global_batch", "dp"}
    assert names >= set(knobs_of(JobOptions)) - left_out
    assert not names & left_out


@pytest.mark.parametrize(
    ("choice", "keyword"),
    [
        ({"expert_imbalance": "1.5"}, {"expert_imbalance": 1.5}),
        ({"fused_attention": "false"}, {"fused_attention": False}),
        ({"bucket": "1MiB"}, {"bucket": "1MiB"}),
        ({"cp_impl": "ring", "cp": "2"}, {"cp_impl": "ring", "cp": 2}),
        ({"tp": ""}, {}),
    ],
)
def test_fields_are_keywords(choice, keyword):
    assert state_of(choice, {}).keywords() == keyword


def test_measured_options_change_every_point_of_the_curve():
    job = {"model": "resnet50", "nodes": 2, "batch": 32}
    rows = answer(job_of(state_of({**job, "input_time": "9s"}, {}), {}))["rows"]
    assert all(row["step_seconds"] >= 9 for row in rows)
