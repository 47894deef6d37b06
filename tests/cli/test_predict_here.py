"""``paceline predict`` without a cluster: this machine, from its own launches and its profile."""

import json
from datetime import UTC, datetime

import pytest
from builders import a_launch
from click.testing import CliRunner

from paceline.cli.commands.calibrate import command as calibrate
from paceline.cli.commands.predict import command as predict
from paceline.errors import PacelineError
from paceline.hardware.machine_profile import CollectivePoint, Colocation, MachineProfile
from paceline.measurement.environment import machine_fingerprint
from paceline.measurement.probe.machine_probe import current_profile, save_profile
from paceline.step import Phase, Task
from paceline.step.schedule import schedule
from paceline.store import LayerTiming, Outcome, RankSteps, Status, Store
from paceline.workload import zoo

GRAPH = zoo.build("resnet20")
HERE = {"cpu_model": "test", "cores": 2}


def launch(number, seconds, ranks=1, **changes):
    """A launch whose every counted step takes ``seconds`` (rank 1 a tenth longer)."""
    records = tuple(
        RankSteps(rank, (9.0, *[seconds * (1 + 0.1 * rank)] * 4)) for rank in range(ranks)
    )
    layers, timeline = (), None
    if changes.get("instrument") == "layers":
        profile = GRAPH.profile().layers
        layers = tuple(
            LayerTiming(one.name, 1.0, 2.0, float(one.gradient_bytes.at(1))) for one in profile
        )
        timeline = schedule([Task("update", Phase.UPDATE, "compute", 0.01 * seconds)])
    outcome = Outcome(Status.FINISHED, "2026", ranks=records, layers=layers, timeline=timeline)
    fields = {"model": "resnet20", "environment": HERE, "job": {"graph": GRAPH.to_json()}}
    return a_launch(f"l{number}", world_size=ranks, outcome=outcome, **{**fields, **changes})


def a_job(first, seconds, **changes):
    """Everything that predicting two processes of a job needs."""
    return [
        launch(first, seconds, **changes),
        launch(first + 1, seconds, **changes),
        launch(first + 2, 1.3 * seconds, instrument="layers", **changes),
        launch(first + 3, 1.1 * seconds, 2, synchronised=False, **changes),
    ]


def a_profile():
    points = tuple(CollectivePoint(s, 1e-5 + s / 1e9, 1e-5, 1e-1) for s in (1e3, 1e5, 1e7))
    return MachineProfile(
        machine=machine_fingerprint(),
        measured_at=datetime.now(UTC).isoformat(),
        source="test",
        threads=1,
        gemm_flops={512: 5e10},
        memory_bandwidth=1e10,
        all_reduce={2: points},
        colocation={2: Colocation(1.1, 1.3)},
        load_average=0.0,
    )


@pytest.fixture
def store(tmp_path):
    """Launches of one job at batch 64 (1 s) and 16 (0.5 s), and of another framework (3 s)."""
    path = tmp_path / "paceline.db"
    with Store(path) as opened:
        for one in (
            *a_job(10, 1.0),
            *a_job(20, 0.5, batch_per_rank=16),
            *a_job(30, 3.0, framework="chainer"),
            launch(40, 1.0),
        ):
            opened.complete(one)
        save_profile(opened, a_profile())
    return path


def run(command, *arguments):
    answer = CliRunner().invoke(command, list(arguments), catch_exceptions=True)
    if isinstance(answer.exception, PacelineError):
        raise answer.exception
    assert answer.exit_code == 0, answer.output
    return answer.output


def predicted(store, *arguments, model="resnet20"):
    text = run(predict, "--model", model, "--store", str(store), "--json", *arguments)
    document = json.loads(text)
    assert document["schema"] == "paceline/prediction/2"
    return document["predictions"][0]


def test_launches_of_other_batches_and_frameworks_are_other_jobs(store):
    """One process trains 64 samples/s; averaged with the other jobs it would be half of that."""
    usual = predicted(store, "-j", "1x2")
    assert (usual["batch_per_replica"], usual["framework"]) == (64, "torch-ddp")
    assert usual["perfect_samples_per_second"] == pytest.approx(2 * 64, rel=1e-3)
    assert usual["step_seconds"] == pytest.approx(1.1 * 1.1, rel=0.02)
    small = predicted(store, "-j", "1x2", "--batch", "16")
    assert small["perfect_samples_per_second"] == pytest.approx(2 * 16 / 0.5, rel=1e-3)
    other = predicted(store, "-j", "1x2", "--framework", "chainer")
    assert other["perfect_samples_per_second"] == pytest.approx(2 * 64 / 3, rel=1e-3)


def test_what_was_measured_stands_beside_the_prediction(store):
    with Store(store) as opened:
        opened.complete(launch(50, 1.2, 2))
        opened.complete(launch(51, 0.7, 2, batch_per_rank=16))
    text = run(predict, "--model", "resnet20", "--store", str(store), "-j", "1x2", "--json")
    (comparison,) = json.loads(text)["comparisons"]
    assert comparison["label"] == "2 processes"
    assert comparison["measured_samples_per_second"] == pytest.approx(128 / (1.1 * 1.2))
    shown = run(predict, "--model", "resnet20", "--store", str(store), "-j", "1x2")
    assert "(calibration)" in shown
    assert "note: one process as in 3 launches of resnet20 b=64" in shown.replace("\n", " ")


def test_nodes_like_this_one_are_joined_by_the_named_link(store):
    found = predicted(store, "--nodes", "4", "--link", "eth_10g")
    assert (found["nodes"], found["devices"], found["cluster"]) == (4, 4, "nodes like this one")
    assert 0 < found["exposed_communication_seconds"] < 0.1
    with pytest.raises(PacelineError, match="a prediction for several nodes needs a network"):
        predicted(store, "--nodes", "4")


def test_a_model_that_never_ran_is_predicted_from_the_probe(store):
    found = predicted(store, "-j", "1x2", "--batch", "8", model="resnet44")
    assert found["model"] == "resnet44"
    assert any("rates of this machine from its probe" in note for note in found["notes"])


def test_what_calibrating_learns_is_used_by_the_next_prediction(store):
    with Store(store) as opened:
        before = current_profile(opened)
    assert before.training is None
    unknown = predicted(store, "--batch", "8", model="resnet44")
    run(calibrate, "--store", str(store), "--model", "resnet20")
    with Store(store) as opened:
        learnt = current_profile(opened).training
    assert learnt.colocation[2].slowdown == pytest.approx(1.1 * 1.05)
    assert learnt.compute_factor > 1
    known = predicted(store, "--batch", "8", model="resnet44")
    assert known["step_seconds"] == pytest.approx(
        learnt.compute_factor * unknown["step_seconds"], rel=0.05
    )
    assert any("calibrated on resnet20 b=64" in note for note in known["notes"])


def test_a_profile_of_an_older_version_still_opens(store):
    document = a_profile().to_json()
    del document["training"]
    with Store(store) as opened:
        assert MachineProfile.from_json(json.loads(json.dumps(document))).training is None
        opened.save_profile(f"{machine_fingerprint()} threads=1", document)
        assert current_profile(opened).peak_gemm_flops == 5e10


def test_an_empty_store_says_what_to_measure(tmp_path):
    with pytest.raises(PacelineError, match="no launch of 'resnet20'") as caught:
        predicted(tmp_path / "none.db", "-j", "1x2")
    assert "paceline measure" in caught.value.hint
