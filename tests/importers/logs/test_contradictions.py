"""Every reader on a log of its program whose figures cannot all be right: nothing is stored."""

import json
from pathlib import Path

import pytest

from paceline.errors import InputError
from paceline.importers.import_launches import UserFacts, launch_of_log
from paceline.importers.logs import read_log
from paceline.importers.logs.inferred import InferringReader
from paceline.importers.logs.parsing.log_registry import readers

LOGS = Path(__file__).parents[2] / "fixtures" / "logs"

CHANGED = {
    "caffe": ("caffe_time_recorded.log", "Forward-Backward: 535.4 ms", "Forward-Backward: 53.4 ms"),
    "caffe-mpi": ("caffe_mpi_two_nodes.log", "* 32 = 64 img/sec", "* 32 = 640 img/sec"),
    "deepspeed": ("deepspeed_timer.log", "AvgSamplesPerSec=31.0", "AvgSamplesPerSec=310.0"),
    "horovod": ("horovod_gpu.log", "4 GPU(s): 1280.0", "4 GPU(s): 2560.0"),
    "nccl-tests": ("nccl_all_reduce.log", "1916.4   70.04", "1916.4    7.04"),
    "pydtnn": ("pydtnn_new_style.log", "epoch): 269.4737", "epoch): 69.4737"),
    "tf_cnn_benchmarks": (
        "tf_cnn_one_worker.log",
        "total images/sec: 1020",
        "total images/sec: 620",
    ),
}
"""A sample of each of these readers, and what is changed in it."""

WRITTEN = {
    "cntk": [
        "10:00:00:  Epoch[ 1 of 3]-Minibatch[   1-  10]: CrossEntropy = 1.25 * 640; "
        "time = 1.0s; samplesPerSecond = 1280.0"
    ],
    "dllogger": [
        "DLLL "
        + json.dumps(
            {
                "type": "LOG",
                "step": n,
                "data": {"global_batch_size": 8, "step_time": 1.0, "samples/sec": 80},
            }
        )
        for n in (10, 20, 30)
    ],
    "fairseq": [
        f"2021-01-01 10:00:00 | INFO | train_inner | epoch 001:    {n} / 1000 loss=9.1, ppl=50,"
        f" wps=8192, ups=4.0, wpb=4096, bsz=128, num_updates={n}, lr=1e-05, train_wall=3, wall=9"
        for n in (10, 20, 30)
    ],
    "hf-trainer": [
        "  Total train batch size (w. parallel, distributed & accumulation) = 64",
        "{'train_runtime': 120.0, 'train_samples_per_second': 8.0, 'train_steps_per_second': 0.5}",
    ],
    "hf-trainer-json": [
        '{"log_history": [{"step": 600, "train_runtime": 120.0, "train_steps_per_second": 0.5}]}'
    ],
    "inferred": [f"step {n} loss 2.0 step_time 0.5000s (4.000 it/s)" for n in range(9)],
    "megatron-lm": [
        "using world size: 8, data-parallel-size: 8",
        "  seq_length ................... 1000",
        *(
            f" iteration {n:8d}/     100 | consumed samples: {16 * n:12d} | elapsed time per "
            "iteration (ms): 1000.0 | throughput (token/sec/GPU): 500.0 | global batch size: 16 |"
            for n in (10, 20, 30)
        ),
    ],
    "llm.c": [
        "| sequence length T     | 1024 |",
        "| total batch size      | 524288 |",
        *(
            f"step {n:4d}/19560 | loss 9.5 (+nanz)| norm 3.2 (+nanz)| lr 8.57e-07 | 1000.00 ms | "
            "54.2% bf16 MFU | 5242880 tok/s"
            for n in (1, 2, 3)
        ),
    ],
    "maxtext": [
        "Config param max_target_length: 2048",
        "Config param per_device_batch_size: 4",
        "Num_devices: 8, shape (8,)",
        *(
            f"completed step: {n}, seconds: 1.0, TFLOP/s/device: 90.1, Tokens/s/device: 819.2"
            for n in (0, 1, 2)
        ),
    ],
    "metrics-csv": ["step,_runtime,global_batch_size,samples/sec"]
    + [f"{n},{n},8,80" for n in (1, 11, 21, 31)],
    "metrics-json": [
        json.dumps({"_step": n, "_runtime": n, "global_batch_size": 8, "samples/sec": 80})
        for n in (1, 11, 21, 31)
    ],
    "mlperf": [
        ":::MLLOG " + json.dumps({"time_ms": clock, "key": key, "value": value, "metadata": {}})
        for clock, key, value in (
            (0, "global_batch_size", 100),
            (0, "train_samples", 10_000),
            (0, "epoch_start", None),
            (20_000, "epoch_stop", None),
            (20_000, "throughput", 2000.0),
        )
    ],
    "open-clip": [
        f"Train Epoch: 0 [{seen}/9999 (0%)] Data (t): 0.1 Batch (t): 1.0, 9.0/s, 9.0/s/gpu LR: 1"
        for seen in (256, 512, 768)
    ],
    "paddle-trainer": [
        "  Total train batch size (w. parallel, distributed & accumulation) = 8",
        *(
            f"loss: 3.2, global_step: {n}, interval_runtime: 2.0, "
            "interval_samples_per_second: 4.0, interval_steps_per_second: 5.0, epoch: 0.1"
            for n in (10, 20, 30)
        ),
    ],
    "timm": [
        "Process 0, total 1",
        "batch_size: 1024",
        *(
            f"Train: 0 [{n:>4d}/1251 (  4%)]  Loss: 6.950 (6.96)  Time: 0.310s,  825.81/s"
            "  (0.300s,  853.33/s)  LR: 1.000e-06  Data: 0.010 (0.020)"
            for n in (0, 50, 100)
        ),
    ],
    "tqdm": ["Epoch 0: 100%|██████████| 100/100 [00:50<00:10, 9.00it/s]"],
    "training-bar": ["100%|██████████| 100/100 [00:50<00:10, 9.00it/s]"],
}
"""Lines of each of these programs."""

ONE_FIGURE = {
    "cntk-profiler": "times of operations, without a rate",
    "dllogger-text": "a clock, and samples per second, from which the batch follows",
    "maskrcnn-benchmark": "seconds of a step",
    "nanotron": "seconds and tokens of a step, from which the sequence follows",
    "nemo-automodel": "tokens per second",
    "semseg": "seconds of a step",
    "tensorflow": "seconds of a step",
    "composer": "samples and steps per second, from which the batch follows",
    "detectron2": "seconds of a step",
    "lbann": "seconds of a step; the run time of an epoch holds more than its steps",
    "litgpt": "milliseconds of a step",
    "metric-logger": "seconds of a step",
    "mlflow": "one metric in a file",
    "mmcv": "seconds of a step",
    "mmengine": "seconds of a step",
    "modded-nanogpt": "a clock, and its mean since the beginning",
    "mxnet": "samples per second",
    "nanogpt": "milliseconds of a step",
    "nemo": "seconds of a step and its batch",
    "osu": "times by size, without a bandwidth",
    "paddle": "a device's rate and seconds; the number of devices is not told",
    "pytorch-imagenet": "seconds of a step",
    "singa": "samples per second and seconds of a step, from which the batch follows",
    "swin": "seconds of a step",
    "tarantella": "seconds of a step",
    "torchtitan": "tokens per second",
}
"""Readers of logs that tell speed once, so that it cannot contradict itself."""


def lines_of(name):
    if name in WRITTEN:
        return "\n".join(WRITTEN[name])
    file, old, new = CHANGED[name]
    text = (LOGS / file).read_text(encoding="utf-8")
    assert old in text
    return text.replace(old, new)


def test_every_reader_has_a_contradiction_or_one_speed():
    own = {name for name, one in readers().items() if not isinstance(one, InferringReader)}
    assert own <= {*CHANGED, *WRITTEN, *ONE_FIGURE}  # test_inferred.py has those of inference


@pytest.mark.parametrize("name", [*CHANGED, *WRITTEN])
def test_a_log_that_contradicts_itself_is_not_stored(tmp_path, name):
    path = tmp_path / "job.log"
    path.write_text(lines_of(name), encoding="utf-8")
    log = read_log(path, name)
    assert log.contradictions
    with pytest.raises(InputError, match="is inconsistent"):
        launch_of_log(log, path, "study", UserFacts(batch_per_rank=8))
