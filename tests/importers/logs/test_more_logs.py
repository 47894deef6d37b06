"""Further formats of printed speed, and prefixes of lines."""

import json

import pytest

from paceline.errors import InputError
from paceline.importers.logs import read_log


def read(tmp_path, lines, program=None):
    path = tmp_path / "job.log"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return read_log(path, program)


def imagenet(step, now, mean, data, epoch=0, total=500):
    return (
        f"Epoch: [{epoch}][{step}/{total}]\tTime {now:.3f} ({mean:.3f})\tData {data:.3f} "
        f"({data:.3f})\tLoss 6.91 (6.92)\tPrec@1 0.10 (0.11)\tPrec@5 0.50 (0.52)"
    )


def d2(iteration, mean, place="[03/01 10:00:00] d2.utils.events INFO: "):
    figures = f"total_loss: 4.9  time: {mean:.4f}  data_time: 0.02"
    return f"{place} eta: 0:09:23  iter: {iteration}  {figures}"


def dll(second, text):
    return f"DLL 2022-03-01 10:00:{second:02d}.000000 - {text}"


def fairseq(update, wps, wall):
    return (
        f"2021-01-01 10:00:00 | INFO | train_inner | epoch 001:  {update} / 9000 loss=9.1, "
        f"wps={wps}, ups=2.00, wpb=4096, bsz=128, num_updates={update}, lr=1e-05, wall={wall}"
    )


TIMES = ((5, 0.9), (10, 0.4), (15, 0.6))
LOGS = {
    "imagenet_from_0": (
        [imagenet(0, 9.0, 9.0, 5.0), imagenet(9, 0.5, 1.5, 0.6), imagenet(19, 0.5, 1.0, 0.35)],
        {"program": "pytorch-imagenet", "step": (20 * 1.0 - 9.0) / 19, "input": 2.0 / 19},
    ),
    "imagenet_late": (
        [imagenet(300, 2.9, 2.0, 0.5), imagenet(320, 2.9, 2.05, 0.5)],
        {"step": (321 * 2.05 - 301 * 2.0) / 20},
    ),
    "imagenet_every_step_with_means_that_run_on": (
        [imagenet(n, 0.5, 1.2, 0.1, epoch=7) for n in (1, 2, 3, 4)],
        {"step": 0.5},
    ),
    "imagenet_apex": (
        [
            f"Epoch: [0][{n}/100]\tTime {m if n == 1 else 0.5:.3f} ({m:.3f})\t"
            f"Speed 128.0 ({64 / m:.3f})\tLoss 6.9 (6.9)\t"
            "Prec@1 0.1 (0.1)"
            for n, m in ((1, 3.2), (11, 0.8), (21, 0.64))
        ],
        {"step": (21 * 0.64 - 3.2) / 20, "batch": 64},
    ),
    "detectron2_file": (
        [d2(19, 0.8), d2(39, 0.6), d2(59, 0.5)],
        {"program": "detectron2", "step": (60 * 0.5 - 20 * 0.8) / 40},
    ),
    "detectron2_resumed": (
        [
            "[03/01 10:00:00] d2.engine.train_loop INFO: Starting training from iteration 5000",
            *(d2(n, m) for n, m in ((5019, 0.8), (5039, 0.6), (5059, 0.5))),
        ],
        {"program": "detectron2", "step": (60 * 0.5 - 20 * 0.8) / 40},
    ),
    "maskrcnn_benchmark": (
        [
            f"2020-01-01 10:00:00,000 maskrcnn_benchmark.trainer INFO: eta: 1:00:00  iter: {n}  "
            f"loss: 1.1 (1.2)  time: 0.4 ({m:.4f})  data: 0.01 (0.0100)  lr: 0.01  max mem: 3000"
            for n, m in ((20, 0.8), (40, 0.6), (60, 0.5))
        ],
        {"program": "maskrcnn-benchmark", "step": (60 * 0.5 - 20 * 0.8) / 40},
    ),
    "semseg": (
        [
            f"[2023-05-01 10:00:0{c} INFO misc.py line 120 1] Train: [1/100][{n}/510] "
            f"Data 0.002 (0.010) Batch {s:.3f} (1.000) Remain 44:55:39 loss: 1.07 Lr: 0.01"
            for n, s, c in ((1, 5.0, "1,000"), (2, 0.5, "1,500"), (3, 0.7, "2,200"))
        ],
        {"program": "semseg", "step": 0.6},
    ),
    "paddle_seg": (
        [
            f"2021-03-30 06:55:57 [INFO]\t[TRAIN] epoch: 1, iter: {n}/500, loss: 2.1, lr: 0.01, "
            f"batch_cost: {s:.4f}, reader_cost: 0.01, ips: {8 / s:.4f} samples/sec | ETA 00:04:16"
            for n, s in TIMES
        ],
        {"program": "paddle", "step": 0.5, "input": 0.01},
    ),
    "paddle_seg_old": (
        [
            f"2021-01-19 07:02:41 [INFO]\t[TRAIN] epoch=1, iter={n}/100, loss=2.8, lr=0.01, "
            f"batch_cost={s:.4f}, reader_cost=0.01 | ETA 00:01:24"
            for n, s in TIMES
        ],
        {"program": "paddle", "step": 0.5},
    ),
    "paddle_detection": (
        [
            f"[02/04 22:46:24] ppdet.engine INFO: Epoch: [0] [{n}/7312] learning_rate: 0.01 "
            f"loss: 4.5 eta: 1:00:00 batch_cost: {s:.4f} data_cost: 0.0100 ips: {8 / s} images/s"
            for n, s in TIMES
        ],
        {"program": "paddle", "step": 0.5, "input": 0.01},
    ),
    "paddle_classification_with_evaluation": (
        [
            *(
                f"[2022/01/01 10:00:00] ppcls INFO: [Train][Epoch 1/120][Iter: {n}/5005]lr: 0.1, "
                f"CELoss: 7.0, loss: 7.0, batch_cost: {s:.4f}s, reader_cost: 0.01, ips: {64 / s} "
                "samples/s, eta: 1:00:00"
                for n, s in TIMES
            ),
            "[2022/01/01 10:09:00] ppcls INFO: [Eval][Epoch 1][Iter: 0/98]CELoss: 7.0, "
            "batch_cost: 9.0s, reader_cost: 0.01, ips: 7 images/sec",
        ],
        {"program": "paddle", "step": 0.5},
    ),
    "paddle_classification_old": (
        [
            f"2020-12-30 06:13:33 INFO: epoch:0   train step:{n}   top1: 0.0 loss: 11.5 lr: 0.1, "
            f"batch_cost: {s:.4f} s, reader_cost: 0.01 s, ips: {64 / s} images/sec."
            for n, s in TIMES
        ],
        {"program": "paddle", "step": 0.5},
    ),
    "fairseq_clock_of_2019": (
        [
            f"| epoch 001:  {n} / 900 loss=6.6, ppl=98, wps=644, ups=0, wpb=4096.0, bsz=64.0, "
            f"num_updates={n}, lr=0.001, gnorm=0.2, clip=0.1, oom=0.000, wall={w}, train_wall={w}"
            for n, w in ((100, 400), (200, 450), (300, 500))
        ],
        {"program": "fairseq-2019", "step": 0.5, "rate": 128.0},
    ),
    "fairseq_2018": (
        [
            f"| epoch 002:   {n} / 8223 loss=1.2 (1.5), wps=8192, wpb=4096, bsz=32, lr=0.001"
            for n in (100, 200, 300)
        ],
        {"program": "fairseq", "step": 0.5, "rate": 64.0},
    ),
    "open_clip_2022": (
        [
            f"2022-07-25,10:00:00 | INFO | Train Epoch: 0 [{256 * n:>8}/99999 (0%)] "
            "Loss: 5.1 (5.2) Data (t): 0.01 Batch (t): 0.500s, 512/s LR: 0.0001 Logit Scale: 14.2"
            for n in (1, 11, 21)
        ],
        {"program": "open-clip", "step": 0.5, "rate": 512.0, "batch": 256},
    ),
    "tf_slim": (
        [
            f"INFO:tensorflow:global step {n}: loss = 7.1 ({s:.3f} sec/step)"
            for n, s in ((1, 30.0), (2, 0.4), (3, 0.6))
        ],
        {"program": "tensorflow", "step": 0.5},
    ),
    "tf_estimator": (
        [
            "INFO:tensorflow:loss = 7.1, step = 1",
            "INFO:tensorflow:global_step/sec: 2.0",
            *(
                f"INFO:tensorflow:loss = 7.1, step = {n} ({s} sec)"
                for n, s in ((101, 90.0), (201, 50.0), (301, 50.0))
            ),
        ],
        {"program": "tensorflow", "step": 0.5},
    ),
    "nanotron": (
        [
            f"10/01/2025 10:00:{5 * n // 2:02d} [INFO|DP=0|PP=0|TP=0]: iteration: {n} / 100 | "
            "consumed_tokens: "
            "8M | elapsed_time_per_iteration_ms: 2.5K | tokens_per_sec: 104.9K | "
            "tokens_per_sec_per_gpu: 13.1K | global_batch_size: 64 | lm_loss: 2.3 | lr: 1e-05"
            for n in (1, 2, 3)
        ],
        {"program": "nanotron", "step": 2.5, "rate": 64 / 2.5, "ranks": 8},
    ),
    "neox_with_deepspeed": (
        [
            "[2023-07-25 21:03:17,269] [INFO] [timer.py:215:stop] epoch=0/micro_step=34/"
            "global_step=34, RunningAvgSamplesPerSec=7.9, CurrSamplesPerSec=8.0",
            *(
                f" samples/sec: 8.000 | iteration {n:8d}/   10000 | elapsed time per iteration "
                "(ms): 4000.0 | learning rate: 2.1E-06 | lm_loss: 1.1E+01 |"
                for n in (1, 2, 3)
            ),
        ],
        {"program": "megatron-lm", "step": 4.0, "batch": 32},
    ),
    "dllogger_text_iterations": (
        [
            dll(2 * n, f"Iteration: {n}  throughput_train : 32.0 seq/s mlm_loss : 10.4")
            for n in range(10, 15)
        ],
        {"program": "dllogger", "step": 2.0, "batch": 64},
    ),
    "dllogger_text_epochs": (
        [
            dll(5 * (4 * e + n), f"Epoch: {e} Iteration: {n}  train.total_ips : 25.6 img/s")
            for e in (0, 1)
            for n in range(4)
        ],
        {"program": "dllogger", "step": 5.0, "batch": 128},
    ),
    "dllogger_text_times": (
        [dll(n, f"(1, {n}) train_iter_time : {s}") for n, s in ((1, 9.0), (2, 0.4), (3, 0.6))],
        {"program": "dllogger", "step": 0.5},
    ),
    "mmcv_json": (
        [
            '{"env_info": "linux", "seed": 0}',
            *(
                json.dumps({"mode": m, "epoch": e, "data_time": 0.01, "time": s, "lr": 1})
                for m, e, s in (
                    ("train", 1, 9.0),
                    ("train", 2, 0.4),
                    ("val", 2, 7.0),
                    ("train", 3, 0.6),
                )
            ),
        ],
        {"program": "metrics-json", "step": 0.5, "input": 0.01},
    ),
    "mmengine_scalars": (
        [
            json.dumps({"lr": 0.1, "data_time": 0.01, "loss": 1.5, "time": t, "iter": n, "step": n})
            for n, t in ((50, 9.0), (100, 0.4), (150, 0.6))
        ]
        + [json.dumps({"coco/bbox_mAP": 0.3, "data_time": 0.2, "time": 7.0, "step": 1})],
        {"program": "metrics-json", "step": 0.5, "input": 0.01},
    ),
    "nanogpt_with_evaluation_in_a_step": (
        [
            f"iter {n}: loss 2.9, time {ms}ms, mfu 30.00%"
            for n, ms in ((0, 9000), (10, 400), (20, 600), (30, 9500), (40, 500))
        ],
        {"program": "nanogpt", "step": 0.5},
    ),
    "mxnet_two_workers": (
        [
            f"[1,{rank}]<stderr>:INFO:root:Epoch[0] Batch [{n}]\tSpeed: 400.0 samples/sec"
            for n in (20, 40, 60)
            for rank in (0, 1)
        ],
        {"program": "mxnet", "rate": 800.0, "ranks": 2},
    ),
    "composer_on_8_devices": (
        [
            line
            for n in (10, 11)
            for line in (
                f"[batch={n}/4800]:",
                "         Train throughput/batches_per_sec: 0.1000",
                "         Train throughput/samples_per_sec: 32.0000",
                "         Train throughput/device/batches_per_sec: 0.0125",
                "         Train throughput/device/samples_per_sec: 4.0000",
            )
        ],
        {"program": "composer", "rate": 32.0, "step": 10.0, "batch": 320, "ranks": 8},
    ),
    "tqdm_without_a_bar": (
        [f"Epoch 0:  9% {n}/900 [{t}<05:00,  2.00it/s, loss=0.1]" for n, t in
         ((10, "00:09"), (50, "00:29"), (90, "00:49"))],
        {"program": "tqdm", "step": 0.5},
    ),
    "tqdm_of_batches": (
        [f"Epoch 1:  15%|█▌     | {n}/200 [{t}<00:08,  2.00batch/s]" for n, t in
         ((10, "00:09"), (50, "00:29"), (90, "00:49"))],
        {"program": "tqdm", "step": 0.5},
    ),
    "hf_trainer_resumed": (
        [
            "***** Running training *****",
            "  Total train batch size (w. parallel, distributed & accumulation) = 16",
            "  Total optimization steps = 1,000",
            "  Continuing training from global step 900",
            "{'train_runtime': 50.0, 'train_samples_per_second': 320.0, "
            "'train_steps_per_second': 20.0, 'train_loss': 0.4, 'epoch': 3.0}",
        ],
        {"program": "hf-trainer", "step": 0.5, "rate": 32.0},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LOGS)
def test_figures_are_those_of_the_log(tmp_path, name):
    lines, expected = LOGS[name]
    log = read(tmp_path, lines)
    found = {
        "program": log.program,
        "step": log.step_seconds,
        "rate": log.throughput and log.throughput.per_second,
        "batch": log.global_batch,
        "ranks": log.ranks,
        "input": log.phases.get("input"),
    }
    assert log.contradictions == ()
    for key, value in expected.items():
        assert found[key] == (value if key == "program" else pytest.approx(value, rel=5e-3)), key


NANOGPT = "iter {}: loss 2.9, time {}ms, mfu 30.00%"
PREFIXES = {
    "kubectl": "2024-05-01T12:00:00.123456789Z ",
    "containerd": "2024-05-01T12:00:00.123456789+02:00 stdout F ",
    "pod": "[pod/trainer-0/pytorch] ",
    "compose": "trainer-1  | ",
    "ray": "(RayTrainWorker pid=4711, ip=10.0.0.7) ",
    "srun": "0: ",
    "torchrun": "[default0]:",
    "sagemaker": "[1,mpirank:0,algo-1]<stdout>:",
    "two": "2024-05-01T12:00:00Z [rank0]: ",
    "colours": "\x1b[32m",
}


@pytest.mark.parametrize("prefix", PREFIXES.values(), ids=list(PREFIXES))
def test_prefixes_of_launchers_and_collectors_are_removed(tmp_path, prefix):
    times = ((0, 9000), (10, 400), (20, 600))
    log = read(tmp_path, [prefix + NANOGPT.format(n, ms) for n, ms in times])
    assert (log.program, log.step_seconds) == ("nanogpt", pytest.approx(0.5))
    assert log.ranks is None, "rank 0 alone does not tell how many there are"


def test_a_stray_number_in_brackets_is_no_rank(tmp_path):
    lines = [f"Batch [{n}] Speed: 400.0 samples/sec Train-accuracy=0.1" for n in (10, 20, 30)]
    lines += [f"Batch [{n}] Speed: 400.0 samples/sec Train-accuracy=0.2" for n in (10, 20, 30)]
    log = read(tmp_path, [*lines, "[7] Train-accuracy=0.5"])
    assert (log.ranks, log.throughput.per_second) == (None, pytest.approx(400.0))


CONTRADICTIONS = {
    "wall_clock": [fairseq(n, 2048, w) for n, w in ((100, 10), (200, 30), (300, 50))],
    "time_stamps": [
        f"2021-01-01 10:00:{n:02d} [INFO]\t[TRAIN] epoch: 1, iter: {n}/500, loss: 2.1, "
        "batch_cost: 2.5, reader_cost: 0.01, ips: 3.2 samples/sec"
        for n in (10, 20, 30)
    ],
    "means_that_run_on": [
        imagenet(n, 0.5, 1.2, 0.1, epoch=7) for n in (1, 11, 21)
    ],
    "two_runs_in_one_table": [
        '"Step","run-a - train/loss","run-b - train/loss","run-a - _runtime","run-b - _runtime"',
        *(f'"{n}","4.0","4.0","{10 * n}","{5 * n}"' for n in (10, 20, 30)),
    ],
    "open_clip_begun_late": [
        "2022-07-25,10:00:00 | INFO | Train Epoch: 1 [ 25600000/99999999 (8%)] Loss: 0.4 (0.4) "
        "Data (t): 0.01 Batch (t): 0.500s, 512/s LR: 0.0001"
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_contradicting_figures_are_not_stored(tmp_path, name):
    try:
        log = read(tmp_path, CONTRADICTIONS[name])
    except InputError:
        return
    assert log.contradictions or (not log.steps and log.throughput is None)


def test_time_outside_the_printed_steps_is_reported(tmp_path):
    lines = [
        f"2023/01/01 10:0{n}:00 - mmengine - INFO - Epoch(train)  [1][{20 * n:4d}/900]  lr: 1e-3  "
        "time: 2.0000  data_time: 0.0100  loss: 6.9000"
        for n in (1, 2, 3)
    ]
    log = read(tmp_path, lines)
    assert "3 s per step apart: it may not cover the whole step" in log.contradictions[0]
