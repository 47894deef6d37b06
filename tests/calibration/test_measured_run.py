"""A log as evidence: a prediction of the measured job gives the measured step."""

import pytest

import paceline
from paceline.calibration.measured_run import measured_run
from paceline.errors import InputError
from paceline.store import Launch

CLUSTER = "dgx_h100"


def log_of(folder, seconds=0.8, head=("world_size=8", "global batch size: 256")):
    path = folder / "train.log"
    times = {n: 1e3 * seconds * (1 + 0.02 * (n % 3 - 1)) for n in range(1, 40)}
    lines = [f"step {n} | loss {9 / n + 2:.4f} | step time {t:.1f} ms" for n, t in times.items()]
    path.write_text("\n".join([*head, *lines]))
    return path


def test_a_prediction_of_the_same_job_gives_the_measured_step(tmp_path):
    run = measured_run(log_of(tmp_path), "resnet50", CLUSTER, precision="amp_fp16")
    assert run.options["batch"] == 32
    found = paceline.predict(
        run.model, CLUSTER, evidence=run.evidence, **{**run.options, "nodes": 1}
    )
    assert found.step_seconds == pytest.approx(0.8, rel=0.02)
    assert "train.log: 800 ms per step of 32 samples per replica on 1x8" in run.evidence.source


def test_other_nodes_and_batches_are_predicted_from_the_run(tmp_path):
    slow = measured_run(log_of(tmp_path, 0.8), "resnet50", CLUSTER, batch=64)
    fast = measured_run(log_of(tmp_path, 0.4), "resnet50", CLUSTER, batch=64)
    assert slow.options["batch"] == 64
    steps = [
        paceline.predict(
            one.model, CLUSTER, evidence=one.evidence, **{**one.options, "nodes": 4}
        ).step_seconds
        for one in (slow, fast)
    ]
    assert steps[0] == pytest.approx(1.6, rel=0.15)
    assert steps[1] == pytest.approx(0.8, rel=0.15)


def test_what_the_log_lacks_is_asked_for(tmp_path):
    with pytest.raises(InputError, match="does not state the number of processes"):
        measured_run(log_of(tmp_path, head=()), "resnet50", CLUSTER, batch=32)
    run = measured_run(log_of(tmp_path, head=()), "resnet50", CLUSTER, batch=16, measured_on="2x8")
    assert "16 samples per replica on 2x8" in run.evidence.source
    assert "measured_on" not in run.options
    with pytest.raises(InputError, match="does not name a built-in model"):
        measured_run(log_of(tmp_path), cluster=CLUSTER)
    with pytest.raises(InputError, match="does not state the batch size"):
        measured_run(log_of(tmp_path, head=("world_size=8",)), "resnet50", CLUSTER)


def test_a_recorded_launch_is_evidence(tmp_path):
    made = paceline.import_launches(
        log_of(tmp_path), model="resnet50", store=tmp_path / "store.sqlite"
    )
    launch = made.launches[0]
    assert isinstance(launch, Launch)
    run = measured_run(launch, cluster=CLUSTER)
    assert (run.model, run.options["batch"]) == ("resnet50", 32)


def test_degrees_of_the_plan_divide_the_batch_among_replicas(tmp_path):
    run = measured_run(
        log_of(tmp_path, 9.0), "llama3_8b", CLUSTER, tp=4, precision="bf16", seq=2048
    )
    assert run.options["batch"] == 128
