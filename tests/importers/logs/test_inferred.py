"""Logs of programs without a reader: the step time is inferred, or the log is refused."""

from datetime import datetime, timedelta

import pytest

from paceline.errors import InputError
from paceline.importers.logs import read_log
from paceline.importers.logs.inferred import READER
from paceline.importers.logs.parsing.log_lines import split_rank

REFUSED = None


def varied(value: float, index: int, by: float = 0.03) -> float:
    """``value`` with a variation that repeats every seven steps and averages to zero."""
    return value * (1 + by * ((index * 3) % 7 - 3) / 3)


def clock(seconds: float, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    return (datetime(2024, 5, 1, 12) + timedelta(seconds=seconds)).strftime(form)


def numbered(line, count: int = 21, stride: int = 1) -> list[str]:
    """``line(step, index)`` for ``count`` records."""
    return [line(index * stride, index) for index in range(1, count + 1)]


LOGS = {
    "mlx": (
        [
            *numbered(
                lambda n, i: (
                    f"Iter {n}: Train loss {varied(2, i):.3f}, Learning Rate 1.000e-05, "
                    f"It/sec {varied(0.9, i):.3f}, Tokens/sec {varied(380, i):.3f}, Trained Tokens "
                    f"{420 * n}, Peak mem 18.2 GB"
                ),
                stride=10,
            ),
            "Iter 200: Val loss 2.301, Val took 12.107s",
        ],
        1 / 0.9,
    ),
    "build_nanogpt": (
        [
            "total desired batch size: 524288",
            "=> calculated gradient accumulation steps: 32",
            *numbered(
                lambda n, i: (
                    f"step {n:5d} | loss: {varied(6, i):.6f} | lr 6.0000e-04 | norm: 1.1 |"
                    f" dt: {varied(500, i):.2f}ms | tok/sec: {524288 / varied(0.5, i):.2f}"
                )
            ),
        ],
        0.5,
    ),
    "olmo": (
        [
            line
            for n, i in ((10 * i, i) for i in range(1, 15))
            for line in (
                f"{clock(430.0 * n)}.123\thost:0\tolmo.train:650\tINFO\t[step={n}/739328]",
                f"    train/CrossEntropyLoss={varied(5, i):.3f}",
                "    train/Perplexity=2,345",
                f"    throughput/total_tokens={n * 4194304:,}",
                f"    throughput/device/tokens_per_second={varied(9754, i):,.0f}",
                f"    throughput/device/batches_per_second={1 / varied(430, i):.6f}",
            )
        ],
        430.0,
    ),
    "paddle_rec": (
        numbered(
            lambda n, i: (
                f"{clock(0.052 * n)},123 - INFO - epoch: 0, batch: {n}, loss: "
                f"{varied(0.5, i):.6f}, avg_reader_cost: 0.00100 sec, avg_batch_cost: "
                f"{varied(0.052, i):.5f} sec, avg_samples: 512.00000, ips: {512 / 0.052:.2f} ins/s"
            ),
            stride=100,
        ),
        0.052,
    ),
    "aws_fsdp": (
        numbered(
            lambda n, i: (
                f"{clock(16.0 * n)} I [train.py:120] Batch {n} Loss: {varied(8, i):.5f}, "
                "Speed: 4.02 samples/sec, lr: 0.000006"
            )
        ),
        16.0,
    ),
    "opennmt": (
        numbered(
            lambda n, i: (
                f"[{clock(0.9 * n)},123 INFO] Step {n}/100000; acc: 7.5; ppl: 912.3; xent:"
                f" 6.8; lr: 0.00001; sents: 1234; bsz: 3000/2800/60; 12345/11000 tok/s; "
                f"{0.9 * n:.0f} sec;"
            ),
            stride=50,
        ),
        0.9,
    ),
    "internevo": (
        numbered(
            lambda n, i: (
                f"{clock(6.5 * n)},003\tINFO training_internlm.py:601 in "
                f"record_current_batch_training_metrics -- tflops=181.2 step={n} loss=8.1 tgs "
                f"(tokens/gpu/second)=4100.12 lr=1e-07 loss_scale=65536.0 grad_norm=1.2 "
                f"micro_num=4 num_consumed_tokens={n * 131072} num_samples_in_batch=13 "
                f"largest_length=2048 fwd_bwd_time={varied(6.1, i):.2f}"
            )
        ),
        6.5,
    ),
    "pidnet": (
        numbered(
            lambda n, i: (
                f"{clock(0.93 * n)},110 Epoch: [0/484] Iter:[{n}/743], Time: "
                f"{varied(0.93, i):.2f}, lr: [0.01], Loss: {varied(8, i):.6f}, Acc:0.12"
            ),
            stride=10,
        ),
        0.93,
    ),
    "time_of_unclear_steps": (
        numbered(lambda n, i: f"Iter:[{n}/743], Time: 0.93, Loss: {varied(8, i):.6f}", stride=10),
        REFUSED,
    ),
    "basicsr": (
        numbered(
            lambda n, i: (
                f"{clock(0.123 * n)},101 INFO: [edsr..][epoch:  0, iter:{n:8,d}, "
                f"lr:(2.000e-04,)] [eta: 1 day, 2:03:04, time (data): "
                f"{varied(0.123, i):.3f} (0.002)] l_pix: {varied(0.05, i):.4e}"
            ),
            stride=100,
        ),
        0.123,
    ),
    "yolox": (
        numbered(
            lambda n, i: (
                f"{clock(0.31 * n)} | INFO     | yolox.core.trainer:261 - epoch: 1/300, "
                f"iter: {n}/925, gpu mem: 7321Mb, mem: 12.1Gb, iter_time: {varied(0.31, i):.3f}s, "
                f"data_time: 0.001s, total_loss: {varied(15, i):.1f}, lr: 1.4e-06, size: 640, "
                "ETA: 10 days, 12:11:10"
            ),
            stride=10,
        ),
        0.31,
    ),
    "milliseconds_per_step": (
        numbered(
            lambda n, i: f"step {n}/5000 loss {varied(2, i):.3f} ({varied(250, i):.0f} ms/step)",
            stride=10,
        ),
        0.25,
    ),
    "elapsed_seconds": (
        numbered(lambda n, i: f"[{0.04 * n:.1f}s] iter={n} loss={varied(1, i):.3f}", stride=100),
        0.04,
    ),
    "slow_steps": (
        numbered(
            lambda n, i: f"step:{n}/100 train_time:{707000 * n}ms loss:{varied(3, i):.4f}", count=12
        ),
        707.0,
    ),
    "two_ranks": (
        [
            f"[rank{rank}]: step: {n} loss: {varied(3, n):.4f} time: "
            f"{varied(0.2 + 0.01 * rank, n):.3f}s"
            for n in range(1, 43)
            for rank in (0, 1)
        ],
        0.21,
    ),
    "glog": (
        numbered(
            lambda n, i: (
                f"I0501 {clock(0.2 * n, '%H:%M:%S')}.000001 123 train.cc:77] step {n} "
                f"loss {varied(3, i):.3f}"
            ),
            stride=10,
        ),
        0.2,
    ),
    "colours": (
        numbered(
            lambda n, i: (
                f"\x1b[32mstep {n}\x1b[0m loss \x1b[1m{varied(3, i):.3f}\x1b[0m "
                f"\x1b[36mstep_time {varied(0.4, i):.4f}s\x1b[0m"
            )
        ),
        0.4,
    ),
    "resumed": (
        [
            *numbered(lambda n, i: f"step {n} loss 2.1 dt {varied(0.4, i):.4f}s", count=14),
            "resuming from checkpoint at step 10",
            *numbered(lambda n, i: f"step {n + 10} loss 2.1 dt {varied(0.4, i):.4f}s", count=14),
        ],
        0.4,
    ),
    "evaluation_only": (
        numbered(lambda n, i: f"eval step {n}/40 loss {varied(2, i):.3f} 10.1 it/s"),
        REFUSED,
    ),
    "evaluation_between": (
        [
            line
            for n in range(1, 43)
            for line in (
                f"step {n} train_loss {varied(2, n):.3f} {1 / varied(0.25, n):.4f} it/s",
                *([f"validation step {n} loss 2.0 20.000 it/s"] if n % 10 == 0 else []),
            )
        ],
        0.25,
    ),
    "counter_of_samples": (
        numbered(
            lambda n, i: f"Train Epoch: 1 [{n}/60000 ({n // 600}%)]\tLoss: {varied(1, i):.6f}",
            stride=640,
        ),
        REFUSED,
    ),
    "no_time": (
        numbered(lambda n, i: f"{{'loss': {varied(2, i):.4f}, 'step': {n}, 'lr': 1e-05}}"),
        REFUSED,
    ),
    "rates_contradict_durations": (
        numbered(lambda n, i: f"step {n} loss 2.0 step_time 0.5000s (4.000 it/s)"),
        REFUSED,
    ),
    "durations_contradict_stamps": (
        numbered(lambda n, i: f"{clock(3.0 * n)} step {n} loss 2.0 step_time 0.5000s"),
        REFUSED,
    ),
    "too_few_digits": (numbered(lambda n, i: f"step {n} loss 2.0 0.1 s/it"), REFUSED),
    "loading_bar": (
        numbered(lambda n, i: f"Loading shards: batch {n}/40, 3.21 it/s"),
        REFUSED,
    ),
}


@pytest.mark.parametrize("name", LOGS)
def test_the_step_time_is_right_or_the_log_is_refused(name, tmp_path):
    lines, seconds = LOGS[name]
    log = READER.read([split_rank(line) for line in lines])
    if seconds is REFUSED:
        assert log.contradictions or not log.steps
        return
    assert not log.contradictions
    assert log.step_seconds == pytest.approx(seconds, rel=0.02)
    assert log.facts["inferred_from"]


def test_the_registry_infers_when_no_reader_knows_a_log(tmp_path):
    path = tmp_path / "train.log"
    path.write_text("\n".join(LOGS["milliseconds_per_step"][0]))
    log = read_log(path)
    assert log.program == "inferred"
    assert log.step_seconds == pytest.approx(0.25, rel=0.02)


def test_a_question_names_the_unclear_field(tmp_path):
    path = tmp_path / "train.log"
    path.write_text("\n".join(LOGS["time_of_unclear_steps"][0]))
    with pytest.raises(InputError, match="unclear whether 'time' is the time of one step"):
        read_log(path)


def inferred(lines):
    return READER.read([split_rank(line) for line in lines])


def test_a_duration_that_happens_to_grow_is_no_clock():
    lines = [f"iter_dt {ms:.2f}ms; iter {n}: train loss 6.5" for n, ms in MINGPT.items()]
    assert inferred(lines).step_seconds == pytest.approx(2.642, rel=1e-3)


MINGPT = {0: 0.0, 100: 2373.85, 200: 2684.57, 300: 2867.47}


def test_batches_of_tokens_are_no_samples():
    lines = [f"step {n} | loss 2.1 | 812.3 ms/step" for n in range(20)]
    stated = ["batch_type : token", "total batch size (w. parallel & accumulation): 80"]
    assert inferred([*stated[1:], *lines]).global_batch == 80
    assert inferred([*stated, *lines]).global_batch is None


def test_one_printing_rank_does_not_count_ranks():
    lines = [f"step {n} | loss 2.1 | 812.3 ms/step" for n in range(20)]
    assert inferred([f"[default7]:{line}" for line in lines]).ranks is None
    both = [f"[default{rank}]:{line}" for line in lines for rank in range(8)]
    assert inferred(both).ranks == 8


def test_lines_of_epochs_that_state_a_time_per_step():
    ends = [f"Epoch {n} done, average batch time: 0.21{n % 3} s" for n in range(5)]
    assert inferred(ends).step_seconds == pytest.approx(0.211, rel=0.01)
    only_epochs = [f"Epoch {n} done, loss 2.{n}, time: 61.{n} s" for n in range(8)]
    assert inferred(only_epochs).step_seconds is None


def test_numbers_without_a_unit_may_be_milliseconds():
    lines = [f"step {n} loss 2.1 step_time: 35{n % 3}.21" for n in range(20)]
    log = inferred(lines)
    assert log.step_seconds is None
    assert "its unit" in log.warnings[0]


def test_lines_that_were_held_back_are_not_timed():
    even = [clock(26.7 * n) + f" | Train Step={20 * n}, Loss=0.4" for n in range(1, 12)]
    burst = [clock(480 + 4 * n) + f" | Train Step={220 + 20 * n}, Loss=0.4" for n in range(1, 8)]
    assert inferred(even).step_seconds == pytest.approx(1.335, rel=0.02)
    assert inferred([*even, *burst]).step_seconds is None


def test_a_batch_of_the_epoch_beside_a_global_step():
    steps = [(100, 99), (200, 199), (300, 35), (400, 135), (500, 235)]
    lines = [f"global step {n}/792, batch: {k}, loss: 0.3, speed: 3.62 step/s" for n, k in steps]
    assert inferred(lines).step_seconds == pytest.approx(1 / 3.62, rel=0.01)


def test_a_lost_counter_line_does_not_shift_the_fields_below_it():
    blocks = [
        [f"Learning iteration {n}/1500", "Loss: 2.1", f"Total time: {1.21 * n:.2f}s"]
        for n in range(1, 30)
    ]
    kept = [line for n, block in enumerate(blocks) for line in block[n % 3 == 1 :]]
    assert inferred(kept).step_seconds == pytest.approx(1.21, rel=0.01)
