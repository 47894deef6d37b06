"""Logs of CNTK and MLPerf whose figures are easily misread: the right number, or none."""

import json

import pytest

from paceline.errors import InputError
from paceline.importers.import_launches import UserFacts, contradictions_of, launch_of_log
from paceline.importers.logs import ParsedLog, read_log

REFUSED = "refused"


def minibatches(epoch, first, last, samples, seconds, rank=None, rate=None):
    prefix = "" if rank is None else f"MPI Rank {rank}: "
    rate = samples / seconds if rate is None else rate
    return (
        f"{prefix}03/02/2017 10:00:00:  Epoch[{epoch:2d} of 3]-Minibatch[{first:4d}-{last:4d}]: "
        f"CrossEntropy = 1.25 * {samples}; Err = 0.5 * {samples}; "
        f"time = {seconds:.4f}s; samplesPerSecond = {rate:.1f}"
    )


def epoch_line(epoch, samples, seconds):
    return (
        f"03/02/2017 10:00:00: Finished Epoch[{epoch} of 2]: [Training] CrossEntropy = 1.2 * "
        f"{samples}; totalSamplesSeen = {samples}; epochTime={seconds}s"
    )


def sync(number, total, workers):
    each = total / workers
    return (
        f"{number}-th sync: totalThroughput = {total:.2f}k samplesPerSecond , "
        f"throughputPerWorker = {each:.2f}k samplesPerSecond"
    )


def mb(*args, **more):
    return [minibatches(*args, **more)]


CNTK = {
    "constant_batch": (mb(1, 1, 10, 640, 1.0) + mb(1, 11, 20, 640, 1.0), 640.0),
    "growing_batches": (
        mb(1, 1, 10, 640, 0.2) + mb(2, 1, 10, 2560, 0.3) + mb(3, 1, 10, 10240, 0.5),
        13440 / 1.0,
    ),
    "sequences": (
        mb(1, 1, 4, 371, 0.5) + mb(1, 5, 8, 290, 0.4) + mb(1, 9, 12, 512, 0.6),
        1173 / 1.5,
    ),
    "two_train_actions": (
        mb(1, 1, 10, 640, 0.5) + mb(2, 1, 10, 640, 0.5) + mb(1, 1, 10, 640, 1.0),
        1920 / 2.0,
    ),
    "two_actions_same_epoch": (mb(1, 1, 10, 640, 0.5) + mb(1, 1, 10, 640, 1.5), 1280 / 2.0),
    "ranks": (
        mb(1, 1, 10, 640, 1.0, 0)
        + mb(1, 1, 10, 640, 2.0, 1)
        + mb(1, 11, 20, 640, 1.0, 0)
        + mb(1, 11, 20, 640, 2.0, 1),
        1280 / 4.0,
    ),
    "ranks_growing": (
        [m for r in (0, 1) for m in mb(1, 1, 10, 640, 1.0, r) + mb(2, 1, 10, 2560, 1.0, r)],
        3200 / 2.0,
    ),
    "interrupted": ([*mb(1, 1, 10, 640, 1.0), minibatches(1, 11, 20, 640, 1.0)[:70]], 640.0),
    "interrupted_on_one_rank": (
        mb(1, 1, 10, 640, 2.0, 0) + mb(1, 1, 10, 640, 2.0, 1) + mb(1, 11, 20, 640, 2.0, 0),
        320.0,
    ),
    "evaluation_between": (
        [
            *mb(1, 1, 10, 640, 1.0),
            "03/02/2017 10:00:09: Minibatch[1-500]: CrossEntropy = 0.2 * 10000",
            *mb(2, 1, 10, 640, 3.0),
        ],
        1280 / 4.0,
    ),
    "epochs_only": ([epoch_line(1, 1000, 2.0), epoch_line(2, 1000, 3.0)], 400.0),
    "epochs_of_two_actions": (
        [epoch_line(1, 1000, 2.0), epoch_line(2, 1000, 2.0), epoch_line(1, 1000, 6.0)],
        300.0,
    ),
    "syncs": ([sync(1, 10, 4), sync(2, 40, 4)], 16000.0),
    "syncs_against_lines": ([*mb(1, 1, 10, 640, 1.0), sync(1, 10, 4)], REFUSED),
    "contradicts_itself": (mb(1, 1, 10, 640, 1.0, rate=1280.0), REFUSED),
}


@pytest.mark.parametrize("name", CNTK)
def test_cntk_is_right_or_refused(tmp_path, name):
    lines, truth = CNTK[name]
    check(tmp_path, [*lines, "03/02/2017 10:00:09: Starting minibatch loop."], truth)


def event(key, time_s=0.0, value=None, **metadata):
    return ":::MLLOG " + json.dumps(
        {"time_ms": int(time_s * 1000), "key": key, "value": value, "metadata": metadata}
    )


def settings(**values):
    return [event(key, value=value) for key, value in values.items()]


def blocks(*stops, kind="block", **metadata):
    lines, clock = [], 0.0
    for seconds, more in stops:
        lines.append(event(f"{kind}_start", clock, **metadata))
        clock += seconds
        lines.append(event(f"{kind}_stop", clock, **metadata, **more))
        clock += 5.0  # evaluation
    return lines


JOB = {"global_batch_size": 100, "number_of_nodes": 2, "accelerators_per_node": 4}
EPOCHS = settings(**JOB, train_samples=10_000) + blocks((20, {}), (20, {}), kind="epoch")
MLPERF = {
    "epochs": (EPOCHS, 500.0),
    "printed_of_the_job": ([*EPOCHS, event("throughput", value=505.0)], 500.0),
    "printed_per_device": ([*EPOCHS, event("throughput", value=500.0 / 8)], 500.0),
    "printed_contradicts": ([*EPOCHS, event("throughput", value=2000.0)], REFUSED),
    "samples_count_per_block": (
        settings(**JOB, train_samples=6_513_144)
        + blocks((4, {"samples_count": 2048}), (4, {"samples_count": 2048})),
        512.0,
    ),
    "samples_count_running": (
        [
            *settings(**JOB),
            event("block_start", 0, samples_count=0),
            event("block_stop", 10, samples_count=3000),
            event("block_start", 12, samples_count=3000),
            event("block_stop", 22, samples_count=6000),
        ],
        300.0,
    ),
    "tokens_with_a_rate": (
        settings(**JOB, max_sequence_length=2048)
        + blocks((10, {}), epoch_count=2048 * 1000)
        + [event("throughput", value=100.0)],
        100.0,
    ),
    "tokens_without_a_rate": (
        settings(**JOB, max_sequence_length=2048) + blocks((10, {}), epoch_count=2048 * 1000),
        100.0,  # as samples a step would take 0.5 ms
    ),
    "samples_or_tokens": (
        settings(**JOB, max_sequence_length=16) + blocks((10, {}), epoch_count=16_000),
        REFUSED,
    ),
    "iterations_called_samples": (
        settings(**JOB, train_samples=117)
        + blocks((20, {}), kind="epoch")
        + [event("throughput", value=500.0)],
        REFUSED,
    ),
    "iterations_as_rate_of_a_device": (
        [
            *settings(global_batch_size=2528, train_samples=463),
            *blocks((4.4, {}), kind="epoch"),
            event("throughput", value=463 / 4.4),
        ],
        REFUSED,
    ),
    "growing_batches": (
        [
            *settings(global_batch_size=100, number_of_ranks=8),
            event("block_start", 0),
            event("block_stop", 10, samples_count=1000),
            *settings(global_batch_size=400),
            event("block_start", 20),
            event("block_stop", 30, samples_count=2000),
        ],
        150.0,
    ),
    "two_runs_in_one_file": (
        [
            *EPOCHS,
            event("run_stop", 50, status="success"),
            event("epoch_start", 100),
            event("epoch_stop", 140),
        ],
        30_000 / 80,
    ),
    "every_rank_prints": ([f"{rank}: {line}" for line in EPOCHS for rank in range(4)], 500.0),
    "tracked_by_block": (
        [*EPOCHS, event("tracked_stats", 45, {"throughput": 505.0, "step": 100})],
        500.0,
    ),
    "interrupted": ([*EPOCHS[:-1], event("epoch_stop", 45)[:40]], 500.0),
    "only_counts": (
        [
            *settings(**JOB),
            event("eval_accuracy", 10, 0.1, samples_count=1000),
            event("eval_accuracy", 20, 0.2, samples_count=3000),
        ],
        200.0,
    ),
}


@pytest.mark.parametrize("name", MLPERF)
def test_mlperf_is_right_or_refused(tmp_path, name):
    check(tmp_path, *MLPERF[name])


def test_mlperf_of_2019_and_2018(tmp_path):
    old = [
        ':::MLL 1560000000.0 global_batch_size: {"value": 100, "metadata": {"lineno": 1}}',
        ':::MLL 1560000000.0 train_samples: {"value": 10000, "metadata": {"lineno": 1}}',
        ':::MLL 1560000000.0 epoch_start: {"value": null, "metadata": {"epoch_num": 1}}',
        ':::MLL 1560000020.0 epoch_stop: {"value": null, "metadata": {"epoch_num": 1}}',
    ]
    check(tmp_path, old, 500.0)
    older = [
        ":::MLPv0.5.0 resnet 1540000000.000 (main.py:10) input_batch_size: 100",
        ":::MLPv0.5.0 resnet 1540000000.000 (main.py:11) preproc_num_train_examples: 10000",
        ":::MLPv0.5.0 resnet 1540000000.000 (main.py:12) train_epoch: 1",
        ":::MLPv0.5.0 resnet 1540000020.000 (main.py:12) train_epoch: 2",
        ":::MLPv0.5.0 resnet 1540000040.000 (main.py:15) eval_start",
        ':::MLPv0.5.0 resnet 1540000050.000 (main.py:15) run_stop: {"success": true}',
    ]
    log = check(tmp_path, older, 500.0)
    assert (log.model, log.finished) == ("resnet", True)


def check(folder, lines, truth) -> ParsedLog:
    path = folder / "job.log"
    path.write_text("\n".join(lines))
    log = read_log(path)
    if truth == REFUSED:
        assert log.contradictions
        with pytest.raises(InputError, match="is inconsistent and was not imported"):
            launch_of_log(log, path, "study", UserFacts(batch_per_rank=10))
        return log
    assert not log.contradictions
    assert log.throughput is not None
    assert log.throughput.per_second == pytest.approx(truth, rel=1e-3)
    if log.global_batch:
        launch = launch_of_log(log, path, "study", UserFacts())
        assert launch.outcome is not None
        stored = [sum(one.wall_seconds) / len(one.wall_seconds) for one in launch.outcome.ranks]
        assert log.global_batch / max(stored) == pytest.approx(truth, rel=0.01)
    return log


def test_batches_that_grow_are_counted_in_steps_of_their_own(tmp_path):
    lines, _ = MLPERF["growing_batches"]
    log = check(tmp_path, lines, 150.0)
    assert sum(one.count for one in log.steps) == 1000 / 100 + 2000 / 400
    assert log.global_batch == pytest.approx(3000 / 15)


def test_ranks_of_cntk_are_those_that_print(tmp_path):
    lines, truth = CNTK["ranks"]
    log = check(tmp_path, [*lines, "MPI Rank 0: Starting minibatch loop."], truth)
    assert log.ranks == 2


def test_options_that_contradict_the_log_are_reported():
    log = ParsedLog("cntk", ranks=4, global_batch=128.0, precision="fp16")
    said = contradictions_of(UserFacts(batch_per_rank=64, ranks=2, precision="fp16"), log)
    assert said == ["using processes 2; the log states 4"]
    said = contradictions_of(UserFacts(batch_per_rank=64), log)
    assert said == ["using batch 64; the log states 32"]
