"""A log of the user's run as evidence for the same job on more nodes."""

import pytest

import paceline as pl
from paceline.calibration.run_evidence import RunEvidence
from paceline.errors import InputError

JOB = {"model": "llama3_8b", "cluster": "dgx-h100", "framework": "torchtitan"}
TOKENS_PER_SECOND = 6000.0
START = "[rank0]:[titan] 2025-02-10 10:00:00,000 - root - INFO - "


def write_log(path, tokens=TOKENS_PER_SECOND, mesh=True):
    """A log of torchtitan: 8 processes, 2 sequences of 8192 tokens each."""
    lines = ["Building 1-D device mesh with ['dp_shard'], [8]"] if mesh else []
    lines.append(
        "Training starts at step 1, with local batch size 2, global batch size 16, sequence "
        "length 8192, total steps 100 (warmup 10)."
    )
    lines += [
        f"step: {step}  loss: 9.2  grad_norm: 4.0  memory: 40.0GiB(50%)  tps: {tokens:,.0f}  "
        "tflops: 350.0  mfu: 35.0%"
        for step in (1, 11, 21, 31)
    ]
    path.write_text("".join(f"{START}{line}\n" for line in lines))
    return path


def test_the_logged_run_itself_is_predicted_as_logged(tmp_path):
    found = pl.predict(**JOB, nodes=1, evidence=write_log(tmp_path / "train.log"))
    assert found.samples_per_step == 16 and found.workload.sequence == 8192
    assert found.tokens_per_second == pytest.approx(8 * TOKENS_PER_SECOND, rel=0.01)


def test_a_slower_log_makes_more_nodes_slower_in_proportion(tmp_path):
    fast, slow = (
        pl.predict(**JOB, nodes=4, evidence=str(write_log(tmp_path / f"{rate}.log", rate)))
        for rate in (6000.0, 4800.0)
    )
    assert slow.step_seconds / fast.step_seconds == pytest.approx(6000 / 4800, rel=0.02)
    assert any("6000.0.log" in note for note in fast.notes)
    usual = pl.predict(**JOB, nodes=4, batch=2, seq=8192)
    width = [one.interval.high / one.interval.low for one in (fast, usual)]
    assert width[0] < width[1], "a measured step narrows the interval"


def test_stated_options_win_and_the_batch_of_the_log_stays_with_it(tmp_path):
    log = write_log(tmp_path / "train.log")
    found = pl.predict(**JOB, nodes=1, batch=1, evidence=log)
    assert found.samples_per_step == 8
    assert found.tokens_per_second < 8 * 1.05 * TOKENS_PER_SECOND


def test_processes_that_the_log_does_not_state_are_asked_for():
    run = RunEvidence("x.log", seconds=1.0)
    with pytest.raises(InputError, match="number of processes") as caught:
        run.topology(None, 8)
    assert "--measured-on" in caught.value.hint
    assert run.topology("2x4", 8) == (2, 4)
    assert RunEvidence("x.log", 1.0, devices=16).topology(None, 8) == (2, 8)


@pytest.mark.parametrize("name", ["missing.log", "no-such-study"])
def test_evidence_that_does_not_exist(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="no file or study"):
        pl.predict(**JOB, nodes=1, evidence=name)


def test_a_log_needs_the_hardware_of_its_run(tmp_path):
    with pytest.raises(InputError, match="no cluster or device"):
        pl.predict("llama3_8b", evidence=write_log(tmp_path / "train.log"))


def test_the_batch_of_a_log_is_divided_by_the_processes_that_the_user_states():
    run = RunEvidence("x.log", seconds=1.0, global_batch=256)
    assert run.options({}) == {}
    assert run.options({"measured_on": "1x4"}) == {"batch": 64}
