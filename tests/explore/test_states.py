"""What a browser may send: known names and numbers within bounds, nothing that is opened."""

import json

import pytest

import paceline as pl
from paceline.errors import PacelineError
from paceline.explore.answers import answer, job_of
from paceline.explore.state import ExplorerState, state_of
from paceline.explore.uploads import Uploads
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
        {"batch": 0},
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
        "paceline predict --model resnet50 --cluster dgx-1 --batch 32 --precision fp32 "
        "--scale link=0.25 -j 4x8"
    )


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
    with pytest.raises(PacelineError, match=r"only config\.json"):
        uploads.add("own.py", b"print('no')")
    for content in (b"{", b"[" * 100_000, b"\xff", b"{}", b'{"model_type": "nope"}'):
        with pytest.raises(PacelineError):
            uploads.add("own.json", content)


def test_defaults_are_a_state_themselves():
    assert state_of({}, {}) == ExplorerState()
