"""Logs of scripts and trainers that people copy, and bars as consoles show them."""

import json

import pytest

from paceline.errors import InputError
from paceline.importers.import_launches import UserFacts, launch_of_log
from paceline.importers.logs import read_log


def seconds_of(minutes_and_seconds):
    return f"{minutes_and_seconds // 60:02d}:{minutes_and_seconds % 60:02d}"


def trainer_bar(done, total, clock, rate):
    return (
        f"{100 * done // total:3d}%|███       | {done}/{total} [{seconds_of(clock)}<03:00,  {rate}]"
    )


def swin(step, mean):
    last = 0.5 if step else mean
    return (
        f"[2022-01-01 10:00:00 swin_tiny](main.py 226): INFO Train: [0/300][{step}/1251]\t"
        f"eta 0:10:00 lr 0.000001\t wd 0.0500\ttime {last:.4f} ({mean:.4f})\tloss 6.9000 (6.9500)\t"
        "grad_norm 1.2000 (1.3000)\tloss_scale 1.0000 (1.0000)\tmem 9300MB"
    )


def open_clip(seen, seconds, rate):
    return (
        f"2023-01-05,12:00:00 | INFO | Train Epoch: 0 [{seen:>8}/1000000 (0%)] Data (t): 0.012 "
        f"Batch (t): {seconds:.3f}, {rate:.6g}/s, {rate / 8:.6g}/s/gpu LR: 0.000100 "
        "Logit Scale: 14.286 Contrastive_loss: 5.5000 (5.5000) Loss: 5.5000 (5.5000)"
    )


def paddle(step, seconds, batch):
    return (
        f"[2024-01-01 10:00:00,123] [    INFO] - loss: 9.10000000, learning_rate: 1e-05, "
        f"global_step: {step}, current_memory_allocated: 1.0, interval_runtime: {seconds:.4f}, "
        f"interval_samples_per_second: {10 * batch / seconds:.4f}, "
        f"interval_steps_per_second: {10 / seconds:.4f}, progress_or_epoch: 0.1"
    )


BANNER = [
    "***** Running training *****",
    "  Instantaneous batch size per device = 8",
    "  Total train batch size (w. parallel, distributed & accumulation) = 16",
    "  Total optimization steps = 100",
]
LOGS = {
    "maxtext": (
        ["Config param max_target_length: 2048", "Config param per_device_batch_size: 4"]
        + ["Num_devices: 8, shape (8,)"]
        + [
            f"completed step: {n}, seconds: {s:.3f}, TFLOP/s/device: 90.1, Tokens/s/device: "
            f"{8192 / s:.3f}, total_weights: 65536, loss: 9.100"
            for n, s in ((0, 40.0), (1, 2.5), (2, 3.5))
        ],
        {"program": "maxtext", "step": 3.0, "ranks": 8, "batch": 32},
    ),
    "litgpt": (
        [
            f"Epoch 1 | iter {n} step {n} | loss train: 2.500, val: n/a | iter time: {t:.2f} ms "
            "(step) remaining time: 1:02:03"
            for n, t in ((1, 900), (2, 250), (3, 350))
        ],
        {"program": "litgpt", "step": 0.3},
    ),
    "llm.c": (
        [
            "| sequence length T     | 1024                                               |",
            "| total batch size      | 524288                                             |",
            "| num_processes         | 8                                                  |",
        ]
        + [
            f"step {n:4d}/19560 | loss 9.500000 (+nanz)| norm 3.2000 (+nanz)| lr 8.57e-07 | "
            f"{t:.2f} ms | 54.2% bf16 MFU | {524288 / t * 1e3:.0f} tok/s"
            for n, t in ((1, 3000), (2, 1000), (3, 1000))
        ],
        {"program": "llm.c", "step": 1.0, "batch": 512, "ranks": 8},
    ),
    "modded_nanogpt_sets_its_clock_back": (
        [
            f"step:{n}/1770 train_loss:5.1 train_time:{t}ms step_avg:{t / n:.2f}ms"
            for n, t in ((5, 60_000), (10, 61_000), (20, 1_000), (30, 2_000), (40, 4_000))
        ],
        {"program": "modded-nanogpt", "step": (1.0 + 1.0 + 2.0) / 25},
    ),
    "paddle_trainer": (
        [
            "  Total train batch size (w. parallel, distributed & accumulation) = 16",
            *(paddle(step, seconds, 16) for step, seconds in ((10, 9.0), (20, 3.5), (30, 2.5))),
        ],
        {"program": "paddle-trainer", "step": 0.3, "batch": 16},
    ),
    "open_clip": (
        [open_clip(256, 90.0, 2.84), open_clip(25856, 0.5, 512), open_clip(51456, 0.5, 512)],
        {"program": "open-clip", "step": 0.5, "batch": 256},
    ),
    "open_lm_counts_tokens": (
        [
            "model: open_lm_1b",
            *(
                f"2024-01-05,12:00:00 | INFO | Train Epoch: 0 [{seen:>9}/1000000 (0%)] Loss: 9.1 "
                f"Data (t): 0.002 Batch (t): {s:.3f}, {65536 / s:.6g}/s, {8192 / s:.6g}/s/gpu "
                "LR: 0.1"
                for seen, s in ((32, 50.0), (352, 1.75), (672, 1.25))
            ),
        ],
        {"program": "openlm", "step": 1.5, "batch": 32, "ranks": 8},
    ),
    "metric_logger": (
        [
            f"Epoch: [0]  [{n:>4}/1251]  eta: 0:10:00  lr: 0.000001  loss: 1.2000 (1.3000)  "
            f"time: {s:.4f}  data: 0.0010  max mem: 9300"
            for n, s in ((0, 5.0), (20, 0.4), (40, 0.6))
        ],
        {"program": "metric-logger", "step": 0.5},
    ),
    "swin": (
        [swin(0, 6.0), swin(10, 1.0), swin(20, 0.75)],
        {"program": "swin", "step": (21 * 0.75 - 6.0) / 20},
    ),
    "megatron_deepspeed": (
        [
            f" iteration {n:8d}/ 115311 | consumed samples: {192 * n:12d} | consumed tokens: "
            f"{192 * 2048 * n:14d} | elapsed time per iteration (s): {s:.2f} | learning rate: "
            "6.000E-05 | global batch size:   192 | lm loss: 1.000000E+01 | grad norm: 1.200 | "
            f"number of nan iterations:   0 | samples per second: {192 / s:.3f} | TFLOPs: 120.30 |"
            for n, s in ((1, 30.0), (2, 8.0), (3, 8.0))
        ],
        {"program": "megatron-lm", "step": 8.0, "batch": 192},
    ),
    "llama_factory": (
        [
            json.dumps(
                {
                    "current_steps": 5 * n,
                    "total_steps": 100,
                    "loss": 1.5,
                    "elapsed_time": f"0:{10 * n // 60:02d}:{10 * n % 60:02d}",
                    "remaining_time": "0:03:10",
                }
            )
            for n in range(1, 8)
        ],
        {"program": "metrics-json", "step": 2.0},
    ),
    "dllogger_of_nemo": (
        [
            "DLLL "
            + json.dumps(
                {
                    "elapsedtime": str(92.0 * n),
                    "type": "LOG",
                    "step": n,
                    "data": {"reduced_train_loss": 9.1, "train_step_timing in s": s},
                }
            )
            for n, s in ((1, 9.0), (2, 2.0), (3, 4.0))
        ],
        {"program": "metrics-json", "step": 3.0},
    ),
    "composer_of_devices": (
        [
            "[batch=10/4800]:",
            "\t Train throughput/batches_per_sec: 2.0",
            "\t Train throughput/samples_per_sec: 64.0",
            "\t Train throughput/device/samples_per_sec: 8.0",
        ],
        {"program": "composer", "step": 0.5, "batch": 32},
    ),
    "rich_bar": (
        [
            f"Epoch 0/1 ━━━━━━━━╸━━━━━━━━━━━ {n}/100 0:00:{s:02d} • 0:00:10 2.00it/s v_num: 0.000"
            for n, s in ((10, 5), (50, 25), (90, 45))
        ],
        {"program": "tqdm", "step": 0.5},
    ),
    "levanter": (
        [
            f"Progress on:train {n}it/1.00kit rate:{r} remaining:15:00 elapsed:{c} postfix:loss=9.1"
            for n, r, c in (("1.00", "90.0s/it", "01:30"), ("100", "2.0it/s", "02:21"))
        ],
        {"program": "tqdm", "step": 51 / 99},
    ),
    "trainer_that_was_ended": (
        BANNER
        + [trainer_bar(n, 100, 10 + 2 * n, "2.00s/it") for n in (1, 20)]
        + [trainer_bar(25, 25, 3, "8.10it/s"), "{'eval_loss': 1.2, 'epoch': 0.2}"]
        + [trainer_bar(n, 100, 10 + 2 * n, "2.00s/it") for n in (21, 40)]
        + ["{'loss': 1.2, 'grad_norm': 1.0, 'learning_rate': 1e-05, 'epoch': 0.4}"],
        {"program": "hf-trainer", "step": 2.0, "batch": 16, "finished": False},
    ),
    "bar_that_waits_for_evaluation": (
        [trainer_bar(n, 100, n, "1.00it/s, loss=1.2") for n in (1, 10, 20, 30)]
        + [trainer_bar(31, 100, 91, "9.00s/it")]
        + [trainer_bar(n, 100, 60 + n, "1.00it/s") for n in (40, 50, 60)],
        {"program": "tqdm", "step": 1.0},
    ),
    "unnamed_bars_of_another_length": (
        [
            trainer_bar(100, 100, 50, "2.00it/s"),
            "{'loss': 1.2, 'grad_norm': 1.0, 'learning_rate': 1e-05, 'epoch': 0.4}",
            trainer_bar(30, 30, 60, "2.00s/it"),
            trainer_bar(100, 100, 50, "2.00it/s"),
        ],
        {"program": "tqdm", "step": 0.5},
    ),
}


def read(folder, lines):
    path = folder / "job.log"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return read_log(path)


@pytest.mark.parametrize("name", LOGS)
def test_figures_are_those_of_the_log(tmp_path, name):
    lines, expected = LOGS[name]
    log = read(tmp_path, lines)
    assert not log.contradictions
    assert log.program == expected["program"]
    assert log.step_seconds == pytest.approx(expected["step"], rel=1e-3)
    assert log.ranks == expected.get("ranks", log.ranks)
    assert log.global_batch == pytest.approx(expected.get("batch"))
    assert log.finished == expected.get("finished", log.finished)


@pytest.mark.parametrize("name", LOGS)
def test_damaged_log_gives_its_valid_part_or_nothing(tmp_path, name):
    lines, _ = LOGS[name]
    cut = [line[: len(line) * (n % 4) // 3] for n, line in enumerate(lines)]
    try:
        log = read(tmp_path, [*cut, "\x00 garbage |%|| {'", "9" * 5000])
    except InputError as refusal:
        assert "not recognised" in refusal.message
    else:
        assert log.step_seconds is None or 0 < log.step_seconds < 1e4


def test_iterations_that_are_parts_of_a_step_are_refused(tmp_path):
    lines = [
        f"Epoch 1 | iter {n} step {n // 4} | loss train: 2.5, val: n/a | iter time: 240.0 ms"
        for n in range(1, 9)
    ]
    log = read(tmp_path, lines)
    with pytest.raises(InputError, match="neither step times nor a throughput"):
        launch_of_log(log, tmp_path / "job.log", "study", UserFacts(batch_per_rank=8))


def test_a_log_that_begins_in_the_middle_contradicts_its_rate(tmp_path):
    log = read(tmp_path, [open_clip(25600 * n, 0.5, 512) for n in (7, 8, 9)])
    assert log.contradictions
