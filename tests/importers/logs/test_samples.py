"""Every reader on logs as its program writes them, damaged ones too; figures worked out by hand."""

from pathlib import Path
from typing import Any

import pytest

from paceline.importers.logs import ParsedLog, RateScope, RateUnit, read_log, sniff_log

LOGS = Path(__file__).parents[2] / "fixtures" / "logs"

# file: what the log must say. Steps as (index, seconds, count, rank, warm_up).
EXPECTED: dict[str, dict[str, Any]] = {
    "caffe_time_recorded.log": {
        "program": "caffe",
        "model": "ResNet20",
        "ranks": 1,
        "global_batch": 32,
        "throughput": 32 / 0.5354,
        "step_seconds": (0.703 + 0.566 + 0.437 + 0.436 + 0.527) / 5,
        "phases": {"forward": 0.161088, "backward": 0.373236},
        "unread_lines": 0,
        "finished": True,
    },
    "caffe_time_network.log": {
        "program": "caffe",
        "model": "LeNet",
        "global_batch": 64,
        "throughput": 64 / 0.0215,
        "step_seconds": 0.021,
        "facts": {"parameters": float(20 * 25 + 20 + 50 * 10 * 3 + 10 * 50 * 22 * 24 + 10)},
        "unread_lines": 0,
        "finished": True,
    },
    "caffe_train_recorded.log": {
        "program": "caffe",
        "ranks": 1,
        "global_batch": 32,
        "step_seconds": (0.915 + 1.008 + 1.289 + 1.035) / 8,
        "throughput": 32 * 8 / 4.247,
        "steps_head": [(0, 0.63, 1, None, True), (2, 0.4575, 2, None, False)],
        "unread_lines": 0,
        "finished": True,
    },
    "caffe_train_old_glog_gpus.log": {
        "program": "caffe",
        "model": "AlexNet",
        "ranks": 4,
        "global_batch": 64 * 2 * 4,
        "step_seconds": 27.99995 / 60,
        "finished": False,
        "unread_lines": 0,
    },
    "caffe_damaged.log": {
        "program": "caffe",
        "model": "LeNet",
        "step_seconds": 4.5 / 20,
        "throughput": 100 * 20 / 4.5,
        "steps_head": [(0, 0.2, 1, None, True), (10, 0.2, 10, None, False)],
        "unread_lines": 4,
    },
    "caffe_mpi_two_nodes.log": {
        "program": "caffe-mpi",
        "ranks": 4,
        "nodes": 2,
        "global_batch": 128,
        "throughput": 64 + 64.3 + 63.7 + 64,
        "step_seconds": 0.5,
        "steps_head": [(0, 2.75, 1, 0, True), (1, 0.75, 1, 0, True), (20, 0.5, 18, 0, False)],
        "unread_lines": 0,
    },
    "nvcaffe_one_node.log": {
        "program": "caffe-mpi",
        "ranks": 4,
        "nodes": 1,
        "global_batch": 1024,
        "throughput": 5191.6,
        "step_seconds": 39 / 198,
        "unread_lines": 0,
    },
    "caffe_mpi_damaged.log": {
        "program": "caffe-mpi",
        "step_seconds": 0.5,
        "rate_unit": RateUnit.STEPS,
        "throughput": 2.0,
        "finished": False,
        "unread_lines": 3,
    },
    "pydtnn_recorded_2ranks.log": {
        "program": "pydtnn",
        "model": "alexnet_cifar10",
        "ranks": 2,
        "global_batch": 64,
        "precision": "fp32",
        "throughput": 29.8221,
        "step_seconds": 12.8764 / 6,
        "steps_head": [
            (3, (14.6271 - 12.8764 / 2) / 3, 3, None, True),
            (6, 12.8764 / 6, 3, None, False),
        ],
        "facts": {"parameters": 23272266.0, "non_blocking_mpi": "False"},
        "unread_lines": 0,
        "finished": True,
    },
    "pydtnn_new_style.log": {
        "program": "pydtnn",
        "model": "vgg11_cifar10",
        "ranks": 4,
        "global_batch": 256,
        "throughput": 269.4737,
        "step_seconds": 38 / 40,
        "unread_lines": 0,
    },
    "pydtnn_damaged.log": {
        "program": "pydtnn",
        "model": "resnet20_cifar10",
        "global_batch": 32,
        "throughput": 20.53,
        "finished": False,
        "unread_lines": 1,
    },
    "cntk_brainscript_2ranks.log": {
        "program": "cntk",
        "version": "2.7+",
        "ranks": 2,
        "global_batch": 128,
        "step_seconds": (0.12 + 0.11 + 0.09) / 3,
        "throughput": 3 * 1280 / (1.2 + 1.1 + 0.9),
        "facts": {"gradient_bits": "1", "parameters": 270896.0},
        "finished": True,
        "unread_lines": 0,
    },
    "cntk_python.log": {
        "program": "cntk",
        "throughput": 150000 / 125,
        "finished": True,
        "unread_lines": 1,
    },
    "cntk_model_averaging.log": {
        "program": "cntk",
        "ranks": 8,
        "throughput": 2 / (1 / 15500 + 1 / 16000),
    },
    "cntk_damaged.log": {
        "program": "cntk",
        "ranks": 2,
        "global_batch": 64,
        "step_seconds": 0.06,
        "unread_lines": 2,
        "finished": False,
    },
    "cntk_profiler_summary.log": {
        "program": "cntk",
        "step_seconds": 0.35,
        "phases": {
            "input": 0.01,
            "forward+backward": 0.25,
            "communicate": 0.06,
            "update": 0.02,
            "other": 0.01,
        },
        "unread_lines": 0,
    },
    "cntk_profiler_tagged.log": {"program": "cntk", "step_seconds": 0.035, "unread_lines": 0},
    "cntk_profiler_damaged.log": {
        "program": "cntk",
        "phases": {"input": 0.01, "forward+backward": 0.25},
        "unread_lines": 1,
    },
    "singa_benchmark.log": {
        "program": "singa",
        "throughput": 2560.0,
        "step_seconds": 0.0125,
        "global_batch": 32.0,
        "unread_lines": 0,
    },
    "singa_train_profile.log": {
        "program": "singa",
        "phases": {"forward": 0.0042, "backward+communicate+update": 0.0098},
        "step_seconds": 0.014,
        "facts": {"epoch_seconds": 30.25},
        "unread_lines": 0,
    },
    "singa_verbosity3.log": {"program": "singa", "phases": {"communicate": 0.001}},
    "singa_damaged.log": {"program": "singa", "phases": {"forward": 0.0042}, "unread_lines": 5},
    "lbann_new.log": {
        "program": "lbann",
        "version": "0.103",
        "model": "resnet50",
        "ranks": 8,
        "nodes": 2,
        "global_batch": 256,
        "step_seconds": 0.5,
        "throughput": 512.0,
        "steps_head": [(100, 0.6, 100, 0, True), (200, 0.5, 100, 0, False)],
        "facts": {"median_seconds": 0.498, "stdev_seconds": 2.12701e-05},
        "unread_lines": 0,
    },
    "lbann_old_no_median.log": {
        "program": "lbann",
        "global_batch": 64,
        "step_seconds": 9.01458e-03,
        "steps_head": [(4220, 9.01458e-03, 844, 0, False)],
        "unread_lines": 0,
    },
    "lbann_damaged_two_trainers.log": {
        "program": "lbann",
        "ranks": 8,
        "global_batch": 256,
        "step_seconds": 0.25,
        "unread_lines": 2,
    },
    "tarantella_2ranks.log": {
        "program": "tarantella",
        "ranks": 4,
        "step_seconds": 0.245,
        "rate_unit": RateUnit.STEPS,
        "throughput": 1 / 0.245,
        "steps_head": [(100, 0.252, 100, None, True), (200, 0.25, 100, None, False)],
        "unread_lines": 0,
        "finished": True,
    },
    "tarantella_verbose2.log": {"program": "tarantella", "ranks": 8, "step_seconds": 0.3},
    "keras3_fit.log": {
        "program": "keras",
        "steps_head": [(938, 6 / 938, 938, None, True), (1876, 0.1, 938, None, False)],
        "step_seconds": 0.1,
    },
    "keras_us_per_sample.log": {"program": "keras", "throughput": 3000.0},
    "tarantella_damaged.log": {
        "program": "tarantella",
        "step_seconds": 0.105,
        "finished": False,
        "unread_lines": 1,
    },
    "horovod_gpu.log": {
        "program": "horovod",
        "model": "resnet50",
        "ranks": 4,
        "global_batch": 256,
        "throughput": 1280.0,
        "step_seconds": (64 / 320 + 64 / 321 + 64 / 319) / 3,
        "unread_lines": 0,
        "finished": True,
    },
    "horovod_cpu_tagged.log": {"program": "horovod", "throughput": 32.0, "step_seconds": 8.0},
    "horovod_damaged.log": {
        "program": "horovod",
        "throughput": 4 * 320.5,
        "finished": False,
        "unread_lines": 1,
    },
    "tf_cnn_one_worker.log": {
        "program": "tf_cnn_benchmarks",
        "version": "TensorFlow 1.13",
        "model": "resnet50",
        "ranks": 4,
        "global_batch": 256,
        "throughput": 1020.5,
        "steps_head": [(1, 0.2, 1, None, False), (10, 0.2, 9, None, False)],
        "step_seconds": 0.25,
        "unread_lines": 0,
    },
    "tf_cnn_horovod.log": {
        "program": "tf_cnn_benchmarks",
        "ranks": 4,
        "throughput": 640.0,
        "step_seconds": (0.2 + 0.3) / 2,
        "unread_lines": 0,
    },
    "tf_cnn_damaged.log": {
        "program": "tf_cnn_benchmarks",
        "throughput": 1280.0,
        "step_seconds": 0.2,
        "finished": False,
        "unread_lines": 1,
    },
    "mlperf_resnet.log": {
        "program": "mlperf",
        "model": "resnet",
        "global_batch": 1024,
        "throughput": 4 * 1281167 / 1900,
        "step_seconds": 1900 * 1024 / (4 * 1281167),
        "finished": True,
        "unread_lines": 1,
    },
    "mlperf_llm_slurm.log": {
        "program": "mlperf",
        "ranks": 64,
        "nodes": 8,
        "global_batch": 1536,
        "sequence_length": 2048,
        "throughput": 384.0,
        "step_seconds": 4.0,
        "finished": False,
    },
    "mlperf_damaged.log": {
        "program": "mlperf",
        "throughput": 102400 / 50,
        "step_seconds": 0.5,
        "unread_lines": 4,
    },
    "torchtitan_8gpus.log": {
        "program": "torchtitan",
        "model": "llama3 debugmodel",
        "ranks": 8,
        "global_batch": 64,
        "sequence_length": 2048,
        "steps_head": [(1, 4.0, 1, 0, True), (10, 0.1, 9, 0, False), (20, 0.2, 10, 0, False)],
        "step_seconds": (9 * 0.1 + 10 * 0.2) / 19,
        "unread_lines": 0,
        "finished": True,
    },
    "torchtitan_old_colours.log": {
        "program": "torchtitan",
        "ranks": 8,
        "step_seconds": 1.0,
        "throughput": 4.0,
        "unread_lines": 0,
    },
    "torchtitan_damaged.log": {
        "program": "torchtitan",
        "step_seconds": 0.5,
        "throughput": 8192.0,
        "rate_unit": RateUnit.TOKENS,
        "rate_scope": RateScope.PER_DEVICE,
        "unread_lines": 1,
    },
    "deepspeed_timer.log": {
        "program": "deepspeed",
        "version": "0.14.0",
        "ranks": 4,
        "global_batch": 64,
        "throughput": 31.0,
        "step_seconds": (64 / 32 + 64 / 25.6) / 2,
        "facts": {"zero_stage": "2"},
        "unread_lines": 0,
    },
    "deepspeed_breakdown.log": {
        "program": "deepspeed",
        "phases": {
            "forward": 0.1579,
            "backward": 0.2089,
            "communicate": 0.0315,
            "update": 0.0219,
        },
        "steps_head": [(1, 1.35, 1, None, False), (2, 0.4203, 1, None, False)],
        "unread_lines": 0,
    },
    "deepspeed_damaged.log": {"program": "deepspeed", "throughput": 230.8213, "unread_lines": 2},
    "nccl_all_reduce.log": {"program": "nccl-tests", "ranks": 4, "nodes": 2, "unread_lines": 0},
    "nccl_old_no_root.log": {"program": "nccl-tests", "ranks": 2, "nodes": 1, "unread_lines": 0},
    "nccl_damaged.log": {"program": "nccl-tests", "ranks": 4, "finished": False, "unread_lines": 1},
    "osu_allreduce.log": {"program": "osu", "version": "v7.3", "unread_lines": 0},
    "osu_damaged.log": {"program": "osu", "version": "v5.6.2", "unread_lines": 1},
}


def read(name: str) -> ParsedLog:
    return read_log(LOGS / name)


def test_every_sample_has_an_expectation():
    assert {path.name for path in LOGS.glob("*.log")} == EXPECTED.keys()


@pytest.mark.parametrize("name", EXPECTED)
def test_figures_of_a_sample(name: str):
    expected, log = EXPECTED[name], read(name)
    for field in ("program", "version", "model", "ranks", "nodes", "precision", "finished"):
        if field in expected:
            assert getattr(log, field) == expected[field], field
    for field in ("unread_lines", "sequence_length"):
        if field in expected:
            assert getattr(log, field) == expected[field], field
    for field in ("global_batch", "step_seconds"):
        if field in expected:
            assert getattr(log, field) == pytest.approx(expected[field]), field
    if "throughput" in expected:
        assert log.throughput is not None
        assert log.throughput.per_second == pytest.approx(expected["throughput"])
        assert log.throughput.unit == expected.get("rate_unit", RateUnit.SAMPLES)
        assert log.throughput.scope == expected.get("rate_scope", RateScope.GLOBAL)
    if "phases" in expected:
        assert log.phases == pytest.approx(expected["phases"])
    for record, wanted in zip(log.steps, expected.get("steps_head", []), strict=False):
        found = (record.index, record.count, record.rank, record.warm_up)
        assert found == (wanted[0], wanted[2], wanted[3], wanted[4])
        assert record.seconds == pytest.approx(wanted[1])
    assert expected.get("facts", {}).items() <= log.facts.items()


def test_caffe_time_gives_the_profile_of_each_layer():
    layers = {layer.name: layer for layer in read("caffe_time_recorded.log").layers}
    assert layers["c0"].forward_seconds == pytest.approx(2.5326e-3)
    assert layers["c0"].backward_seconds == pytest.approx(1.5706e-3)
    assert list(layers)[:3] == ["data", "c0", "b0"]


def test_caffe_gradients_follow_from_the_network_that_the_log_echoes():
    layers = {layer.name: layer for layer in read("caffe_time_network.log").layers}
    assert layers["conv1"].gradient_bytes == 4 * (20 * 1 * 5 * 5 + 20)
    assert layers["conv2"].gradient_bytes == 4 * (50 * 10 * 3 * 1)  # two groups, no bias
    assert layers["ip1"].gradient_bytes == 4 * (10 * 50 * 22 * 24 + 10)
    assert layers["data"].gradient_bytes == 0


def test_nccl_rows_are_points_of_a_curve():
    points = read("nccl_all_reduce.log").collectives
    largest = [point for point in points if point.size_bytes == 134217728]
    assert {point.operation for point in points} == {"all_reduce"}
    assert [point.seconds for point in largest] == pytest.approx([1916.4e-6, 1907.8e-6])
    assert largest[0].bus_bandwidth == pytest.approx(105.06e9)
    assert [point.in_place for point in largest] == [False, True]


def test_osu_rows_are_points_of_a_curve():
    points = read("osu_allreduce.log").collectives
    assert {point.operation for point in points} == {"all_reduce"}
    found = [(point.size_bytes, point.seconds) for point in points]
    assert found[0] == (4, pytest.approx(11.52e-6))
    assert found[-1] == (4194304, pytest.approx(9888.31e-6))
    assert len(read("osu_damaged.log").collectives) == 2


@pytest.mark.parametrize("name", ["nccl_old_no_root.log", "nccl_damaged.log"])
def test_an_unnamed_nccl_test_is_known_by_its_bus_bandwidth(name: str):
    assert {point.operation for point in read(name).collectives} == {"all_reduce"}


@pytest.mark.parametrize("name", EXPECTED)
def test_the_program_is_recognised(name: str):
    reader = sniff_log(LOGS / name)
    assert reader is not None
    assert reader.read(iter(())).program in (EXPECTED[name]["program"], "keras", "tarantella")
