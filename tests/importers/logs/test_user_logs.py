"""Logs that users have: as their programs write them, cut off, damaged, and contradicting."""

import json
import struct

import pytest

from paceline.errors import InputError
from paceline.importers.import_launches import UserFacts, launch_of_log
from paceline.importers.logs import RateScope, RateUnit, read_log


def megatron(step, ms, consumed, batch=16, extra=""):
    return (
        f" [2024-05-01 10:00:00] iteration {step:8d}/     100 | consumed samples: {consumed:12d} |"
        f" elapsed time per iteration (ms): {ms:.1f} |{extra} learning rate: 1.000000E-04 |"
        f" global batch size: {batch:5d} | lm loss: 1.050000E+01 | loss scale: 1.0 |"
        " grad norm: 2.500 | number of skipped iterations:   0 |"
    )


TOKENS = " throughput (token/sec/GPU): {:.1f} |"


def timm(epoch, step, mean, rate):
    last, now = (0.310, 825.81) if step else (mean, rate)
    return (
        f"Train: {epoch} [{step:>4d}/1251 (  4%)]  Loss: 6.950 (6.96)  Time: {last:.3f}s, "
        f"{now:>7.2f}/s  ({mean:.3f}s, {rate:>7.2f}/s)  LR: 1.000e-06  Data: 0.010 (0.020)"
    )


def bar(done, clock, rate, name="Epoch 0", total=100):
    return f"{name}: {100 * done // total:3d}%|████▌     | {done}/{total} [{clock}<00:10, {rate}]"


LOGS = {
    "megatron": (
        [
            "using world size: 8, data-parallel-size: 8",
            "  seq_length ................... 2048",
            megatron(10, 9000, 160),
            megatron(20, 800, 320),
            megatron(30, 1200, 480),
        ],
        {"program": "megatron-lm", "rate": 16.0, "step": 1.0, "ranks": 8, "batch": 16},
    ),
    "megatron_ramp_up": (
        [megatron(10, 900, 160), megatron(20, 800, 320, 16), megatron(30, 800, 640, 32)],
        {"rate": 480 / 16, "step": 0.8, "batch": 24},
    ),
    "nemo_lines": (
        [
            f"Training epoch 0, iteration {i}/249 | lr: 1e-06 | global_batch_size: 8 | "
            f"global_step: {i} | reduced_train_loss: 1.3 | train_step_timing in s: {s}"
            for i, s in ((0, 7.0), (1, 2.25), (2, 1.75))
        ],
        {"program": "nemo", "rate": 4.0, "step": 2.0},
    ),
    "nemo_bar": (
        [
            f"Epoch 0: : {i}%|███| {i}/50 [00:51<00:00, reduced_train_loss=6.1, global_step={i}.0,"
            f" consumed_samples={32 * i}.0, train_step_timing in s={s}]"
            for i, s in ((10, 4.0), (20, 2.0), (30, 2.0))
        ],
        {"program": "nemo", "rate": 16.0},
    ),
    "fairseq": (
        [
            f"2021-01-01 10:00:00 | INFO | train_inner | epoch 001:    {n} / 1000 loss=9.1, ppl=50,"
            f" wps=8192, ups=2, wpb=4096, bsz=128, num_updates={n}, lr=1e-05, train_wall=3, wall=9"
            for n in (10, 20, 30)
        ],
        {"program": "fairseq", "rate": 256.0, "step": 0.5},
    ),
    "deepspeed_breakdown_of_2022": (
        [
            "[2022-08-01 10:00:00,000] [INFO] [logging.py:68:log_dist] [Rank 0] rank=0 time (ms) | "
            "forward: 100.0 | backward: 250.0 | backward_inner: 200.0 | backward_allreduce: 50.0 | "
            "step: 25.0"
        ]
        * 3,
        {"program": "deepspeed", "step": 0.375},
    ),
    "nanogpt": (
        ["tokens per iteration will be: 491,520", "number of parameters: 123.59M"]
        + [
            f"iter {n}: loss 10.9, time {t:.2f}ms, mfu 12.30%"
            for n, t in ((0, 9e3), (1, 400), (2, 600))
        ],
        {"program": "nanogpt", "step": 0.5},
    ),
    "timm": (
        [timm(0, 0, 2.0, 128.0), timm(0, 50, 0.300, 853.33), timm(0, 100, 0.280, 914.29)],
        {"program": "timm", "step": (0.280 * 101 - 2.0) / 100, "batch": 256},
    ),
    "imagenet": (
        [
            f"Epoch: [0][{n:5d}/5005]\tTime {m if n == 1 else 0.35:6.3f} ({m:6.3f})\t"
            "Data  0.001 ( 0.220)\tLoss 6.9e+00 (7.0e+00)\t"
            "Acc@1   0.00 (  0.10)\tAcc@5   0.00 (  0.50)"
            for n, m in ((1, 3.0), (11, 0.75), (21, 0.5))
        ],
        {"program": "pytorch-imagenet", "step": (21 * 0.5 - 3.0) / 20},
    ),
    "mmengine": (
        [
            f"2023/01/01 10:00:00 - mmengine - INFO - Epoch(train)  [1][{n:4d}/1251]  lr: 1.0e-03"
            f"  eta: 1:00:00  time: {t:.4f}  data_time: 0.0100  memory: 5000  loss: 6.9000"
            for n, t in ((50, 0.6), (100, 0.3), (150, 0.5))
        ],
        {"program": "mmengine", "step": 0.4},
    ),
    "mmcv": (
        [
            f"2021-01-01 10:00:00,000 - mmdet - INFO - Epoch [1][{n}/7330]\tlr: 1.0e-03, eta: 1:00,"
            f" time: {t:.4f}, data_time: 0.050, memory: 3000, loss_cls: 1.0, loss: 2.5"
            for n, t in ((50, 0.6), (100, 0.3), (150, 0.5))
        ],
        {"program": "mmcv", "step": 0.4},
    ),
    "detectron2": (
        [
            f"[01/29 06:14:06 d2.utils.events]:  eta: 0:09:23  iter: {n}  total_loss: 4.9  "
            f"loss_cls: 0.9  time: {m:.4f}  data_time: 0.11  lr: 0.000005  max_mem: 4338M"
            for n, m in ((19, 0.8), (39, 0.6), (59, 0.5))
        ],
        {"program": "detectron2", "step": (60 * 0.5 - 20 * 0.8) / 40},
    ),
    "mxnet": (
        [
            f"INFO:root:Epoch[0] Batch [{n}]\tSpeed: {r} samples/sec\taccuracy=0.1"
            for n, r in ((20, 100.0), (40, 400.0), (60, 400.0))
        ],
        {"program": "mxnet", "rate": 400.0},
    ),
    "paddle": (
        [
            f"[2022/01/01 10:00:00] INFO: global step: {n}, epoch: 0, batch: {n}, loss: 1.0, "
            f"avg_reader_cost: 0.001 sec, avg_batch_cost: {s} sec, avg_samples: 32.0, "
            f"ips: {32 / s} sequences/sec"
            for n, s in ((10, 0.9), (20, 0.2), (30, 0.2))
        ],
        {"program": "paddle", "step": 0.2},
    ),
    "hf_trainer": (
        [
            "***** Running training *****",
            "  Instantaneous batch size per device = 8",
            "  Total train batch size (w. parallel, distributed & accumulation) = 16",
            "  Total optimization steps = 60",
            "{'loss': 0.476, 'grad_norm': 0.24, 'learning_rate': 1.4e-05, 'epoch': 4.32}",
            "{'train_runtime': 120.0, 'train_samples_per_second': 8.0, "
            "'train_steps_per_second': 0.5, 'train_loss': 0.7, 'epoch': 4.64}",
        ],
        {"program": "hf-trainer", "rate": 8.0, "step": 2.0, "batch": 16, "finished": True},
    ),
    "hf_trainer_of_today": (
        [
            "{'train_runtime': '120', 'train_samples_per_second': '8', "
            "'train_steps_per_second': '0.5'}"
        ],
        {"program": "hf-trainer", "rate": 8.0, "batch": 16},
    ),
    "trainer_state": (
        json.dumps(
            {
                "global_step": 60,
                "log_history": [
                    {"loss": 1.0, "step": 30},
                    {
                        "step": 60,
                        "train_runtime": 120.0,
                        "train_samples_per_second": 8.0,
                        "train_steps_per_second": 0.5,
                    },
                ],
            },
            indent=2,
        ).splitlines(),
        {"program": "hf-trainer", "rate": 8.0, "step": 2.0},
    ),
    "train_results": (
        json.dumps(
            {
                "epoch": 1.0,
                "train_runtime": 120.0,
                "train_samples_per_second": 8.0,
                "train_steps_per_second": 0.5,
            },
            indent=1,
        ).splitlines(),
        {"program": "hf-trainer", "rate": 8.0},
    ),
    "lightning_csv": (
        [
            "epoch,step,train_loss,train|global/samples_per_sec,val_loss",
            "0,49,1.5,100.0,",
            "0,50,,,1.4",
            "0,99,1.2,300.0,",
            "1,149,1.0,300.0,",
        ],
        {"program": "metrics-csv", "rate": 300.0},
    ),
    "wandb_csv": (
        [
            '"Step","my-run - _runtime","my-run - train/loss"',
            "10,100,2.0",
            "20,110,1.9",
            "30,120,1.8",
            "40,130,1.7",
            "50,240,1.6",
        ],
        {"program": "metrics-csv", "step": 1.0},
    ),
    "wandb_history": (
        [json.dumps({"_step": s, "_runtime": 2.0 * s, "loss": 1.0}) for s in (10, 20, 30, 40)],
        {"program": "metrics-json", "step": 2.0},
    ),
    "tensorboard_csv": (
        ["Wall time,Step,Value"] + [f"{1.7e9 + 3 * s},{s},0.5" for s in (10, 20, 30, 40)],
        {"program": "metrics-csv", "step": 3.0},
    ),
    "mlflow": (
        [f"{1700000000000 + 250 * s} 0.5 {s}" for s in (1, 11, 21, 31)],
        {"program": "mlflow", "step": 0.25},
    ),
    "dllogger": (
        [
            "DLLL "
            + json.dumps({"type": "LOG", "step": [0, n], "data": {"train.total_ips": 750.0}})
            for n in (10, 20)
        ],
        {"program": "metrics-json", "rate": 750.0},
    ),
    "composer": (
        [
            "[batch=10/4800]:",
            "\t Train time/batch: 9",
            "\t Train throughput/samples_per_sec: 64.0",
            "\t Train throughput/batches_per_sec: 2.0",
            "\t Train loss/train/total: 7.1",
        ],
        {"program": "composer", "rate": 64.0, "batch": 32},
    ),
    "tqdm": (
        [
            bar(10, "00:10", "1.00it/s"),
            bar(100, "00:50", "2.00it/s"),
            bar(20, "00:05", "4.0it/s", "Validation DataLoader 0", 20),
            bar(100, "00:50", "2.00it/s", "Epoch 1"),
        ],
        {"program": "tqdm", "step": (40 / 90 + 0.5) / 2},
    ),
    "tqdm_slow": ([bar(60, "02:00", "2.00s/it", "Steps", 60)], {"program": "tqdm", "step": 2.0}),
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
    if "program" in expected:
        assert log.program == expected["program"]
    if "rate" in expected:
        assert (log.throughput.unit, log.throughput.scope) == (RateUnit.SAMPLES, RateScope.GLOBAL)
        assert log.throughput.per_second == pytest.approx(expected["rate"], rel=1e-3)
    if "step" in expected:
        assert log.step_seconds == pytest.approx(expected["step"], rel=1e-3)
    assert log.ranks == expected.get("ranks", log.ranks)
    assert log.global_batch == pytest.approx(expected.get("batch", log.global_batch))
    assert log.finished == expected.get("finished", log.finished)


@pytest.mark.parametrize("name", LOGS)
def test_damaged_log_gives_its_valid_part_or_nothing(tmp_path, name):
    lines, _ = LOGS[name]
    cut = [*lines[:-1], lines[-1][: len(lines[-1]) // 2], "\x00\ufffd garbage |%|| {'", "NaN,,,"]
    path = tmp_path / "job.log"
    path.write_text("\n".join(cut), encoding="utf-8", errors="replace")
    try:
        log = read_log(path)
    except InputError as refusal:
        assert "not recognised" in refusal.message
    else:
        assert log.step_seconds is None or 0 < log.step_seconds < 1e4


CONTRADICTING = {
    "megatron": (
        ["using world size: 8, data-parallel-size: 8", "  seq_length ................... 1000"]
        + [megatron(n, 1000, 16 * n, extra=TOKENS.format(500)) for n in (10, 20, 30)]
    ),
    "timm": [
        timm(0, 0, 2.0, 128.0), timm(0, 50, 0.3, 853.33), "Process 0, total 1", "batch_size: 1024",
        timm(0, 100, 0.3, 853.33),
    ],
    "hf_trainer": [
        "  Total train batch size (w. parallel, distributed & accumulation) = 64",
        "{'train_runtime': 120.0, 'train_samples_per_second': 8.0, 'train_steps_per_second': 0.5}",
    ],
    "trainer_state": [
        '{"log_history": [{"step": 600, "train_runtime": 120.0, "train_steps_per_second": 0.5}]}'
    ],
    "wandb_history": [
        json.dumps({"_step": n, "_runtime": n, "global_batch_size": 8, "samples/sec": 80})
        for n in (1, 11, 21, 31)
    ],
    "tqdm": [bar(100, "00:50", "9.00it/s")],
}  # fmt: skip


@pytest.mark.parametrize("name", CONTRADICTING)
def test_a_log_that_contradicts_itself_is_not_stored(tmp_path, name):
    log = read(tmp_path, CONTRADICTING[name])
    given = UserFacts(batch_per_rank=8)
    with pytest.raises(InputError, match="is inconsistent"):
        launch_of_log(log, tmp_path / "job.log", "study", given)


def test_rows_without_times_are_an_error(tmp_path):
    log = read(tmp_path, ["epoch,step,train_acc,val_acc", "0,49,0.5,", "0,99,0.6,0.5"])
    assert not log.steps and not log.throughput and not log.phases
    assert "no metric is a time or a rate" in log.warnings[0]


def varint(value):
    out = b""
    while True:
        value, low = value >> 7, value & 0x7F
        out += bytes([low | (0x80 if value else 0)])
        if not value:
            return out


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def event(clock, step, tag, value):
    summary = field(1, field(1, tag.encode()) + varint(2 << 3 | 5) + struct.pack("<f", value))
    body = varint(1 << 3 | 1) + struct.pack("<d", clock) + varint(2 << 3) + varint(step)
    body += field(5, summary)
    return struct.pack("<Q", len(body)) + b"crc4" + body + b"crc4"


class TestEventFiles:
    def write(self, folder, content):
        path = folder / "events.out.tfevents.1700000000.host.1.0"
        path.write_bytes(content)
        return path

    def test_steps_follow_from_times(self, tmp_path):
        events = [event(1.7e9 + 0.5 * s, s, "train/loss", 1.0) for s in (10, 20, 30, 40)]
        log = read_log(self.write(tmp_path, b"".join(events)))
        assert (log.program, log.unread_lines) == ("tensorboard", 0)
        assert log.step_seconds == pytest.approx(0.5)
        assert log.losses[0] == (10, 1.0)

    def test_a_rate_in_it_is_held_against_the_steps(self, tmp_path):
        events = [
            event(1.7e9 + 0.5 * s, s, tag, value)
            for s in (10, 20, 30, 40)
            for tag, value in (("global_batch_size", 8.0), ("train/samples_per_second", 99.0))
        ]
        log = read_log(self.write(tmp_path, b"".join(events)))
        assert "6.19" in log.contradictions[0] or "0.162" in log.contradictions[0]

    @pytest.mark.parametrize("cut", [5, 13, 40, 60, 100])
    def test_a_file_that_is_cut_off_or_damaged(self, tmp_path, cut):
        events = b"".join(event(1.7e9 + s, s, "loss", 1.0) for s in (1, 2, 3))
        assert read_log(self.write(tmp_path, events[:-cut])).unread_lines == 1
        read_log(self.write(tmp_path, events[:cut] + b"\xff" * 20 + events[cut:]))
