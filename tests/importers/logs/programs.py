# ruff: noqa: E501
"""Lines as training programs print them, from simulated runs whose step time is known.

The formats follow the sources and the documentation of the programs; the lines are written here.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

DAY = datetime(2025, 5, 1, 12)


@dataclass(frozen=True)
class Line:
    """State of a run at one printed line; times in seconds.

    ``n`` steps in total, ``k`` of ``size`` in epoch ``e``; ``dt`` is the mean of the ``stride``
    steps since the last line, ``last`` of the last step, ``mean`` since the beginning of the epoch;
    ``now`` includes evaluations, ``busy`` does not.
    """

    n: int
    k: int
    e: int
    size: int
    stride: int
    dt: float
    last: float
    mean: float
    now: float
    busy: float
    epoch_busy: float
    begun: int = 0
    first_k: int = 0

    @property
    def loss(self) -> float:
        return 2.0 + 8.0 / (1 + 0.05 * self.n)

    def at(self, form: str = "%Y-%m-%d %H:%M:%S") -> str:
        moment = DAY + timedelta(seconds=self.now)
        return moment.strftime(form.replace("%3", f"{moment.microsecond // 1000:03d}"))

    @property
    def at3(self) -> str:
        return self.at("%Y-%m-%d %H:%M:%S,%3")


def clock(seconds: float, long: bool = False) -> str:
    """``05:12`` or ``1:05:12``, as tqdm shows a time."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours or long:
        return f"{hours:02d}:{minutes:02d}:{rest:02d}"
    return f"{minutes:02d}:{rest:02d}"


def rate(seconds: float, unit: str = "it") -> str:
    """``2.50it/s`` or ``2.50s/it``, as tqdm shows a rate."""
    return f"{1 / seconds:5.2f}{unit}/s" if seconds < 1 else f"{seconds:5.2f}s/{unit}"


def bar(name: str, done: int, total: int, seconds: float, end: str = "", initial: int = 0) -> str:
    """A state of a tqdm bar after ``seconds``; a resumed one begins at ``initial``."""
    each = seconds / (done - initial) if done > initial else 0.0
    left = clock(each * (total - done)) if done else "?"
    shown = rate(each) if done else "?it/s"
    filled = "#" * (10 * done // total)
    head = f"{name}: " if name else ""
    return (
        f"{head}{100 * done // total:3d}%|{filled:<10}| {done}/{total} "
        f"[{clock(seconds)}<{left}, {shown}{end}]"
    )


def other_bar(name: str, total: int, seconds: float) -> list[str]:
    """All states of a bar that counts no training steps."""
    return [bar(name, n, total, seconds * n / total) for n in range(0, total + 1, total // 4)]


@dataclass(frozen=True)
class Program:
    """One program: how it prints a line, and the run that is simulated.

    ``seconds`` is the true step time. ``other`` are the lines of an evaluation, which takes
    ``pause`` seconds after every ``every`` lines. ``unclear``: a person cannot read the rate either.
    """

    line: Callable[[Line], str | list[str]]
    seconds: float = 0.5
    stride: int = 1
    lines: int = 24
    size: int = 400
    head: tuple[str, ...] = ()
    other: Callable[[Line], list[str]] | None = None
    every: int = 8
    pause: float = 7.0
    first: int = 1
    unclear: bool = False


def varied(step: int, by: float = 0.03) -> float:
    """Factor of the time of a step; it averages to one over seven steps."""
    return 1 + by * ((step * 3) % 7 - 3) / 3


def simulated(program: Program, begin: int = 0) -> Iterator[str]:
    """The lines of a run from step ``begin`` on."""
    now = busy = epoch_busy = 0.0
    printed = begin
    window: list[float] = []
    yield from program.head
    for n in range(begin + 1, begin + program.lines * program.stride + 1):
        epoch, k = divmod(n - 1, program.size)
        seconds = program.seconds * varied(n)
        epoch_busy = seconds if k == 0 else epoch_busy + seconds
        now, busy = now + seconds, busy + seconds
        window.append(seconds)
        if n % program.stride:
            continue
        state = Line(
            n - 1 + program.first, k + program.first, epoch, program.size, n - printed,
            sum(window) / len(window), seconds, epoch_busy / (k + 1 - (begin % program.size if epoch == begin // program.size else 0)),
            now, busy, epoch_busy, begin, begin % program.size if epoch == begin // program.size else 0,
        )  # fmt: skip
        found = program.line(state)
        yield from [found] if isinstance(found, str) else found
        window, printed = [], n
        if program.other is not None and (n // program.stride) % program.every == 0:
            now += program.pause
            yield from program.other(replace(state, now=now))


def resumed(program: Program) -> list[str]:
    """Two runs; the second one continues from a checkpoint of the first."""
    begin = program.stride * (program.lines * 2 // 3)
    return [
        *simulated(program),
        f"Resuming training from checkpoint at step {begin}",
        *simulated(program, begin),
    ]


def two_ranks(program: Program) -> list[str]:
    """Each line twice, with the prefix of torchrun for its rank."""
    return [f"[rank{rank}]: {line}" for line in simulated(program) for rank in (0, 1)]


def coloured(program: Program) -> list[str]:
    """Colours around the first part of each line, and Windows line ends."""
    return [f"\x1b[32m{line[:6]}\x1b[0m{line[6:]}\x1b[K\r" for line in simulated(program)]


def cut(program: Program) -> list[str]:
    """A log that begins in the middle and ends within a line."""
    lines = list(simulated(program))[5:]
    return [*lines[:-1], lines[-1][: len(lines[-1]) // 2]]


def crowded(program: Program) -> list[str]:
    """Bars of downloads and loading before the training, unrelated lines within it."""
    lines = list(simulated(program))
    noise = [
        "UserWarning: the argument 'device' is deprecated since 2.1 and will be removed in 4.0",
        "NCCL INFO Channel 00/02 : 0 1 2 3 4 5 6 7",
    ]
    middle = len(lines) // 2
    return [
        *other_bar("Downloading data", 100, 40.0),
        *other_bar("Loading checkpoint shards", 8, 21.0),
        *other_bar("Map (num_proc=8)", 20000, 3.0),
        *lines[:middle],
        *noise,
        *lines[middle:],
    ]


def hf_row(s: Line, more: str = "") -> str:
    return (
        f"{{'loss': {s.loss:.4f}, 'grad_norm': 1.2{s.k % 10}, 'learning_rate': 9.5e-05, {more}"
        f"'epoch': {s.n / s.size:.2f}}}"
    )


def eval_bar(s: Line) -> list[str]:
    return other_bar("Evaluating", 40, 7.0)


PROGRAMS = {
    "ultralytics": Program(
        lambda s: bar(
            f"      {s.e + 1}/100      2.31G      1.172      1.391      1.218         52        640",
            s.k, s.size, s.epoch_busy, initial=s.first_k,
        ),
        0.21, 100, 28, 400,
        other=lambda s: other_bar(
            "                 Class     Images  Instances      Box(P          R      mAP50  mAP50-95)",
            32, 7.0,
        ),
        every=4,
    ),
    "yolov5": Program(
        lambda s: bar(
            f"      {s.e}/299      5.2G    0.1172    0.0391    0.0218        52        640",
            s.k, s.size, s.epoch_busy, initial=s.first_k,
        ),
        1.3, 50, 24, 200,
        other=lambda s: other_bar(
            "                 Class     Images  Instances          P          R      mAP50   mAP50-95",
            32, 7.0,
        ),
        every=4,
    ),
    "yolox": Program(
        lambda s: (
            f"{s.at()} | INFO     | yolox.core.trainer:270 - epoch: {s.e + 1}/300, iter: {s.k}/"
            f"{s.size}, gpu mem: 7321Mb, mem: 12.1Gb, iter_time: {s.dt:.3f}s, data_time: 0.001s, "
            f"total_loss: {s.loss:.1f}, iou_loss: 3.1, lr: 1.421e-06, size: 640, ETA: 10 days, 12:11:10"
        ),
        0.31, 10,
    ),
    "yolov7": Program(
        lambda s: bar(
            f"     {s.e}/299     12.3G   0.05461   0.01017   0.03715    0.1019        26      1280",
            s.k, s.size, s.epoch_busy, initial=s.first_k,
        ),
        2.6, 25, 24, 300,
    ),
    "olmo": Program(
        lambda s: [
            f"{s.at('%Y-%m-%d %H:%M:%S.%3')}\tgpu-03:0\tolmo.train:990\tINFO\t[step={s.n}/10000,epoch=0]",
            f"    train/CrossEntropyLoss={s.loss:.3f}",
            "    train/Perplexity=256.7",
            f"    throughput/total_tokens={s.n * 262144:,}",
            f"    throughput/device/tokens_per_second={32768 / s.dt:,.0f}",
            f"    throughput/device/batches_per_second={1 / s.dt:.4f}",
            "    System/Peak GPU Memory (MB)=22,004",
        ],
        4.97, 10,
    ),
    "olmo_core": Program(
        lambda s: [
            f"{s.at('%Y-%m-%d %H:%M:%S.%3')}\tgpu-03:0\tolmo_core.train.callbacks.console_logger:82\tINFO"
            f"\t[step={s.n}/50000,epoch=1]",
            f"    train/CE loss={s.loss:.3f}",
            "    throughput/device/MFU=41.20",
            f"    throughput/device/TPS={32768 / s.dt:,.0f}",
            f"    throughput/device/BPS={1 / s.dt:.3f}",
            f"    throughput/device/BPS (actual avg)={1 / s.dt:.3f}",
        ],
        3.1, 5,
    ),
    "mlx": Program(
        lambda s: (
            f"Iter {s.n}: Train loss {s.loss:.3f}, Learning Rate 1.000e-05, It/sec {1 / s.dt:.3f}, "
            f"Tokens/sec {420 / s.dt:.3f}, Trained Tokens {420 * s.n}, Peak mem 18.214 GB"
        ),
        1.1, 10, other=lambda s: [f"Iter {s.n}: Val loss 2.301, Val took 12.107s"],
    ),
    "opennmt": Program(
        lambda s: (
            f"[{s.at3} INFO] Step {s.n}/100000; acc: 26.1; ppl: 13.24; xent: 2.58; lr: 0.00100; "
            f"sents: {s.stride * 64}; bsz: 1890/1512/64; {1890 / s.dt:.0f}/{1512 / s.dt:.0f} tok/s; "
            f"{s.now:6.0f} sec;"
        ),
        0.9, 50,
    ),
    "opennmt_old": Program(
        lambda s: (
            f"[{s.at3} INFO] Step {s.n}/100000; acc:  26.11; ppl: 13.24; xent: 2.58; lr: 1.00000; "
            f"{940 / s.dt:.0f}/{730 / s.dt:.0f} tok/s; {s.now:6.0f} sec"
        ),
        0.0866, 50, 30,
    ),
    "build_nanogpt": Program(
        lambda s: (
            f"step {s.n:5d} | loss: {s.loss:.6f} | lr 6.0000e-04 | norm: 1.1021 | "
            f"dt: {1e3 * s.last:.2f}ms | tok/sec: {524288 / s.last:.2f}"
        ),
        0.35, 1, 42, head=("total desired batch size: 524288",), first=0,
        other=lambda s: ["validation loss: 3.2914", "HellaSwag accuracy: 2502/10042=0.2492"],
    ),
    "nanochat": Program(
        lambda s: (
            f"step {s.n:05d}/21400 ({s.n / 214:.2f}%) | loss: {s.loss:.6f} | lrm: 1.00 | "
            f"dt: {1e3 * s.last:.2f}ms | tok/sec: {524288 / s.last:,.0f} | bf16_mfu: 47.31 | epoch: 1 | "
            f"total time: {s.busy / 60:.2f}m"
        ),
        0.49, 1, 42, head=("Total batch size 524,288 => gradient accumulation steps: 1",), first=0,
        other=lambda s: [f"Step {s.n:05d} | Validation bpb: 1.0212"],
    ),
    "modded_nanogpt": Program(
        lambda s: f"step:{s.n}/1390 train_time:{1e3 * s.busy:.0f}ms step_avg:{1e3 * s.busy / (s.n - s.begun):.2f}ms",
        0.0573, 1, 60,
        other=lambda s: [
            f"step:{s.n}/1390 val_loss:4.6639 train_time:{1e3 * s.busy:.0f}ms step_avg:57.30ms"
        ],
        every=25,
    ),
    "modded_nanogpt_2026": Program(
        lambda s: f"step:{s.n}/3350 train_time:{s.busy:.3f}s step_avg:{1e3 * s.busy / (s.n - s.begun):.2f}ms",
        0.147, 1, 60,
        other=lambda s: [
            f"step:{s.n}/3350 val_loss:4.66393 train_time:{s.busy:.3f}s step_avg:147.00ms"
        ],
        every=25,
    ),
    "nanogpt": Program(
        lambda s: f"iter {s.n}: loss {s.loss:.4f}, time {1e3 * s.last:.2f}ms, mfu 31.20%",
        0.13, 1, 42, head=("tokens per iteration will be: 491,520", "number of parameters: 123.59M"),
        first=0, other=lambda s: [f"step {s.n}: train loss 3.1, val loss 3.2"], every=10,
    ),
    "llm_c": Program(
        lambda s: (
            f"step {s.n:4d}/19560 | loss {s.loss:7.6f} (+0.11z)| norm 0.5623 (-0.21z)| lr 6.00e-04 | "
            f"{1e3 * s.last:.2f} ms | 41.2% bf16 MFU | {524288 / s.last:.0f} tok/s"
        ),
        0.33, 1, 42,
    ),
    "paddle_rec": Program(
        lambda s: (
            f"{s.at3} - INFO - epoch: {s.e}, batch_id: {s.k}, AUC:0.788134, ACC:0.68, "
            f"loss:{s.loss:.7f}, avg_reader_cost: 0.00012 sec, avg_batch_cost: {s.dt:.5f} sec, "
            f"avg_samples: 1024.00000, ips: {1024 / s.dt:.5f} ins/s"
        ),
        0.562, 50, 24, 300, first=0,
    ),
    "paddle_video": Program(
        lambda s: (
            f"[{s.at('%m/%d %H:%M:%S')}] epoch:[{s.e + 1:>3d}/80 ] train step:{s.k:<4d} loss: "
            f"{s.loss:.5f} lr: 0.010000 batch_cost: {s.dt:.5f} sec, reader_cost: 0.00120 sec, "
            f"ips: {16 / s.dt:.5f} instance/sec, eta: 3:12:11 "
        ),
        0.83, 10, first=0,
    ),
    "paddle_clas": Program(
        lambda s: (
            f"[{s.at('%Y/%m/%d %H:%M:%S')}] ppcls INFO: [Train][Epoch {s.e + 1}/120][Iter: {s.k}/"
            f"{s.size}]lr(LinearWarmup): 0.00100000, top1: 0.12, CELoss: {s.loss:.5f}, loss: "
            f"{s.loss:.5f}, batch_cost: {s.dt:.5f}s, reader_cost: 0.00111, ips: {64 / s.dt:.5f} samples/s, "
            "eta: 5:10:11"
        ),
        0.41, 10, first=0,
    ),
    "internevo": Program(
        lambda s: (
            f"{s.at3}\tINFO pipeline.py:601 in record_current_batch_training_metrics -- "
            f"tflops=181.2 step={s.n} loss={s.loss:.4f} tgs (tokens/gpu/second)={32768 / s.last:.2f} "
            f"tgs/last_tgs_1={32768 / s.last:.2f} tgs/tgs_all={32768 / s.busy * (s.n - s.begun):.2f} lr=1e-07 "
            f"loss_scale=65536.0 grad_norm=1.2 micro_num=4 num_consumed_tokens={s.n * 262144} "
            f"inf_nan_skip_batches=0 num_samples_in_batch=13 largest_length=2048 fwd_bwd_time={0.93 * s.last:.2f}"
        ),
        6.5, 1, 24, first=0,
    ),
    "aws_fsdp": Program(
        lambda s: (
            f"{s.at()} I [train.py:97] Batch {s.n} Loss: {s.loss:.5f}, Speed: {64 / s.last:.2f} "
            "samples/sec, lr: 0.000006"
        ),
        16.0, 1, 24, first=0,
    ),
    "openvla": Program(
        lambda s: bar(
            f"=>> [Global Step] {s.n:06d} =>> LR :: 0.000020 -- Loss :: {s.loss:.4f}",
            s.n, 4000, s.busy, initial=s.begun,
        ),
        1.9, 20,
    ),
    "lerobot": Program(
        lambda s: (
            f"INFO {s.at()} t_train.py:882 step:{s.n} smpl:{s.n * 8} ep:3 epch:0.08 loss:{s.loss:.3f} "
            f"grdn:15.312 lr:1.0e-05 updt_s:{0.97 * s.dt:.3f} data_s:{0.03 * s.dt:.3f}"
        ),
        0.35, 200, first=1,
    ),
    "verl": Program(
        lambda s: (
            f"step:{s.n} - global_seqlen/min:484245.000 - global_seqlen/mean:501736.750 - "
            f"actor/entropy:0.323 - actor/pg_loss:0.001 - actor/lr:0.000 - training/global_step:{s.n}.000"
            f" - timing_s/gen:{0.5 * s.last:.3f} - timing_s/update_actor:{0.3 * s.last:.3f} - "
            f"timing_s/step:{s.last:.3f} - perf/total_num_tokens:4013894.000 - "
            f"perf/time_per_step:{s.last:.3f} - perf/throughput:{501736 / s.last:.3f}"
        ),
        183.0, 1, 12,
    ),
    "trl_sft": Program(
        lambda s: [bar("", s.n, 240, s.busy, initial=s.begun), hf_row(s, "'mean_token_accuracy': 0.71, ")],
        3.4, 10, 24, 120,
        head=("***** Running training *****", "  Total optimization steps = 240"),
        other=lambda s: other_bar("", 32, 11.0), every=8,
    ),
    "trl_grpo": Program(
        lambda s: [
            bar("", s.n, 240, s.busy, initial=s.begun),
            hf_row(s, f"'reward': 0.7, 'kl': 0.01, 'completion_length': 210.1, 'step_time': {s.dt:.4f}, "),
        ],
        27.0, 10, 24, 120,
    ),
    "axolotl": Program(
        lambda s: [
            hf_row(s, f"'memory/max_active (GiB)': 21.1, 'tokens_per_second_per_gpu': {2100 / s.dt:.2f}, "),
            bar("", s.n, 300, s.busy, initial=s.begun),
        ],
        5.4, 5, 30,
    ),
    "unsloth": Program(
        lambda s: [
            bar("", s.n, 60, s.busy, initial=s.begun), f"{{'loss': '{s.loss:.3f}', 'grad_norm': '0.41', 'learning_rate': "
            f"'0.00018', 'epoch': '{s.n / 400:.4f}'}}",
        ],
        6.1, 1, 60,
        head=("==((====))==  Unsloth - 2x faster free finetuning | Num GPUs used = 1",
              "O^O/ \\_/ \\    Batch size per device = 2 | Gradient accumulation steps = 4",
              '\\        /    Data Parallel GPUs = 1 | Total batch size (2 x 4 x 1) = 8'),
    ),
    "torchtune": Program(
        lambda s: bar(f"{s.e + 1}|{s.n}|Loss: {s.loss}", s.k, s.size, s.epoch_busy, initial=s.first_k),
        2.3, 10,
    ),
    "torchtune_metrics": Program(
        lambda s: (
            f"Step {s.n} | loss:{s.loss} lr:2e-05 tokens_per_second_per_gpu:{4096 / s.last} "
            "peak_memory_active:17.1 "
        ),
        2.3, 1, unclear=True,
    ),
    "torchtitan": Program(
        lambda s: (
            f"[rank0]:[titan] {s.at3} - root - INFO - step: {s.n:2d}  loss: {s.loss:.4f}  grad_norm: "
            f"1.2  memory: 22.1GiB(27.1%)  tps: {16384 / s.dt:,.0f}  tflops: 210.1  mfu: 21.30%"
        ),
        2.2, 10,
    ),
    "lingua": Program(
        lambda s: (
            f"0: INFO    {s.at('%y-%m-%d %H:%M:%S.%3')} - 0:05:12 - step: {s.n}  acc: 0  loss: "
            f"{s.loss:7.4f}  grad: 1.1e+00  flops: 3.1e+14  wps: {32768 / s.dt:.2e}  iter: {s.last:.4f}  "
            "data: 0.0003  lr: 3.0e-03  mem: 81%  pow: 612.1 W"
        ),
        0.71, 10,
    ),
    "megatron": Program(
        lambda s: (
            f" [{s.at()}] iteration {s.n:8d}/  500000 | consumed samples: {s.n * 256:12d} | elapsed time "
            f"per iteration (ms): {1e3 * s.dt:.1f} | throughput per GPU (TFLOP/s/GPU): 410.2 | learning "
            f"rate: 3.0E-04 | global batch size:   256 | lm loss: {s.loss:.6E} | loss scale: 1.0 | "
            "grad norm: 1.023 | number of skipped iterations:   0 | number of nan iterations:   0 |"
        ),
        3.3, 10,
        other=lambda s: [f" validation loss at iteration {s.n} | lm loss value: 2.1E+00 | lm loss PPL: 8.1E+00 |"],
    ),
    "deepspeed": Program(
        lambda s: (
            f"[{s.at3}] [INFO] [timer.py:264:stop] epoch=0/micro_step={s.n}/global_step={s.n}, "
            f"RunningAvgSamplesPerSec={64 / s.dt}, CurrSamplesPerSec={64 / s.dt}, MemAllocated=3.1GB, "
            "MaxMemAllocated=11.2GB"
        ),
        1.6, 10, head=("[INFO] [config.py:999:print]   train_batch_size ............. 64",),
    ),
    "nanotron": Program(
        lambda s: (
            f"{s.at('%m/%d/%Y %H:%M:%S')} [INFO|DP=0|PP=0|TP=0]: iteration: {s.n} / 1000 | consumed_tokens: "
            f"{s.n * 1.05:.1f}M | elapsed_time_per_iteration_ms: {1e3 * s.last:.0f} | tokens_per_sec: "
            f"{1048.576 / s.last:.0f}K | tokens_per_sec_per_gpu: {131.072 / s.last:.1f}K | "
            f"global_batch_size: 256 | lm_loss: {s.loss:.2f} | lr: 0.0003"
        ),
        1.4, 1, 24,
    ),
    "composer": Program(
        lambda s: [
            f"[batch={s.n}/4800]:", f"\t Train time/batch: {s.n - 1}", f"\t Train loss/train/total: {s.loss:.4f}",
            f"\t Train throughput/batches_per_sec: {1 / s.dt:.4f}",
            f"\t Train throughput/samples_per_sec: {512 / s.dt:.4f}",
            f"\t Train throughput/device/samples_per_sec: {64 / s.dt:.4f}",
        ],
        0.8, 5, 24,
    ),
    "timm": Program(
        lambda s: (
            f"Train: {s.e} [{s.k:4d}/{s.size} ({100 * s.k // s.size:3d}%)]  Loss: {s.loss:.3g} ({s.loss:.3g})  "
            f"Time: {s.last:.3f}s, {256 / s.last:7.2f}/s  ({s.mean:.3f}s, {256 / s.mean:7.2f}/s)  "
            "LR: 1.000e-05  Data: 0.010 (0.012)"
        ),
        0.44, 50, 24, 400, first=0,
    ),
    "imagenet": Program(
        lambda s: (
            f"Epoch: [{s.e}][{s.k:4d}/{s.size}]\tTime {s.last:6.3f} ({s.mean:6.3f})\tData  0.010 ( 0.012)\t"
            f"Loss {s.loss:.4e} ({s.loss:.4e})\tAcc@1   3.12 (  2.01)\tAcc@5  10.94 (  8.10)"
        ),
        0.35, 10, 30, 300,
        other=lambda s: [f"Test: [{n:3d}/98]\tTime  0.105 ( 0.131)\tLoss 6.1 (6.2)" for n in (0, 10, 20)],
    ),
    "mmengine": Program(
        lambda s: (
            f"{s.at('%m/%d %H:%M:%S')} - mmengine - INFO - Epoch(train)   [{s.e + 1}][{s.k:4d}/{s.size}]  lr: "
            f"1.0e-02  eta: 2:10:00  time: {s.dt:.4f}  data_time: 0.0121  memory: 5120  loss: {s.loss:.4f}"
        ),
        0.36, 50, 24, 400,
        other=lambda s: [
            f"{s.at('%m/%d %H:%M:%S')} - mmengine - INFO - Epoch(val)   [{s.e + 1}][  50/157]    eta: 0:00:05  "
            "time: 0.0512  data_time: 0.0010  memory: 1210"
        ],
    ),
    "detectron2": Program(
        lambda s: (
            f"[{s.at('%m/%d %H:%M:%S')} d2.utils.events]:  eta: 5:12:10  iter: {s.n}  total_loss: {s.loss:.3f}  "
            f"loss_cls: 0.51  time: {s.busy / (s.n - s.begun):.4f}  last_time: {s.last:.4f}  data_time: 0.0121  "
            "last_data_time: 0.0100   lr: 0.00039  max_mem: 7121M"
        ),
        0.27, 20, 24,
    ),
    "fairseq": Program(
        lambda s: (
            f"{s.at()} | INFO | train_inner | epoch 001:  {s.n:5d} / 9000 loss={s.loss:.3f}, ppl=190.1, "
            f"wps={3584 / s.dt:.1f}, ups={1 / s.dt:.2f}, wpb=3584, bsz=121, num_updates={s.n}, lr=0.0005, "
            f"gnorm=1.1, train_wall={s.dt * s.stride:.0f}, gb_free=8.1, wall={s.now:.0f}"
        ),
        0.21, 100, 24,
    ),
    "basicsr": Program(
        lambda s: (
            f"{s.at3} INFO: [EDSR_..][epoch:{s.e:3d}, iter:{s.n:8,d}, lr:(2.000e-04,)] [eta: 1 day, 2:03:04, "
            f"time (data): {s.dt:.3f} (0.002)] l_pix: {s.loss:.4e} "
        ),
        0.123, 100,
    ),
    "pidnet": Program(
        lambda s: (
            f"{s.at3} Epoch: [{s.e}/484] Iter:[{s.k}/{s.size}], Time: {s.mean:.2f}, lr: [0.01], Loss: "
            f"{s.loss:.6f}, Acc:0.12, Semantic loss: 3.1, BCE loss: 5.0"
        ),
        0.93, 10, first=0,
    ),
    "lightning_tqdm": Program(
        lambda s: bar(f"Epoch {s.e}", s.k, s.size, s.epoch_busy, f", v_num=0, train_loss={s.loss:.3f}", s.first_k),
        0.8, 50, 24, 200, other=lambda s: other_bar("Validation DataLoader 0", 40, 7.0), every=4,
    ),
    "lightning_rich": Program(
        lambda s: (
            f"Epoch {s.e}/9  {'━' * 20}╸{'━' * 10} {s.k}/{s.size} {clock(s.epoch_busy, long=True)} • 0:01:10 "
            f"{1 / s.mean:.2f}it/s v_num: 0.000 train_loss: {s.loss:.3f}"
        ),
        0.4, 50, 24, 200,
    ),
    "keras": Program(
        lambda s: [
            f"Epoch {s.e + 1}/5",
            f"{s.k}/{s.size} ━━━━━━━━━━━━━━━━━━━━ {s.epoch_busy:.0f}s {1e3 * s.mean:.0f}ms/step - "
            f"accuracy: 0.91 - loss: {s.loss:.4f}",
        ],
        0.25, 100, 12, 400,
    ),
    "hf_accelerate_print": Program(
        lambda s: f"epoch {s.e} step {s.k}/{s.size} loss={s.loss:.4f} ({s.stride / (s.dt * s.stride):.2f} steps/s)",
        0.3, 10, 24, 300,
    ),
    "maxtext": Program(
        lambda s: (
            f"completed step: {s.n}, seconds: {s.last:.3f}, TFLOP/s/device: 190.1, Tokens/s/device: "
            f"{8192 / s.last:.3f}, total_weights: 65536, loss: {s.loss:.3f}"
        ),
        2.1, 1, 24,
    ),
    "levanter": Program(
        lambda s: (
            f"{s.at('%Y-%m-%dT%H:%M:%S')} - 0 - levanter.callbacks - tqdm_logging.py:71 - INFO :: Progress on:train "
            f"{s.n}it/2000it rate:{1 / s.dt:.1f}it/s remaining:12:10 elapsed:{clock(s.now)} postfix:loss={s.loss:.2f}"
        ),
        0.52, 20, 30,
    ),
    "dsfd": Program(
        lambda s: [f"Timer: {s.last:.4f}", f"epoch:{s.e} || iter:{s.n} || Loss:{s.loss:.4f}"],
        0.66, 200,
    ),
    "own_seconds": Program(
        lambda s: f"[{s.busy:8.1f}s] it {s.n:6d} | train loss {s.loss:.3f} | lr 3e-4", 0.04, 100,
    ),
    "own_samples": Program(
        lambda s: (
            f"epoch {s.e} [{s.k}/{s.size}] loss={s.loss:.3f} time/batch={s.dt:.3f}s "
            f"throughput={128 / s.dt:.1f} img/s"
        ),
        0.24, 20,
    ),
    "own_json": Program(
        lambda s: f'{{"step": {s.n}, "loss": {s.loss:.4f}, "step_time_ms": {1e3 * s.dt:.2f}, "lr": 0.0003}}',
        0.6, 10,
    ),
    "own_minutes": Program(
        lambda s: f"{s.at('%H:%M:%S')} step {s.n} of 5000, loss {s.loss:.2f}, {1 / s.dt * 60:.1f} steps/min",
        7.5, 1, 24,
    ),
    "own_elapsed_clock": Program(
        lambda s: f"Iteration {s.n} | Elapsed {clock(s.busy, long=True)} | loss {s.loss:.3f}", 0.75, 40,
    ),
    "own_unit_free": Program(
        lambda s: f"iter {s.n} loss {s.loss:.4f} time {s.dt:.3f}", 0.4, 10, unclear=True,
    ),
    "video_interpolation": Program(
        lambda s: (
            f"[{s.n:06d}/50000] VIMEO  | loss {s.loss:.4f} | VRAM 9.8/15.9GB (62%) | GPU 98% | "
            f"{1 / s.dt:.2f} it/s | ETA {(50000 - s.n) * s.dt / 60:.1f} min | batch 16"
        ),
        0.32, 500, 24,
    ),
    "resnet_mxnet": Program(
        lambda s: (
            f"INFO:root:Epoch[{s.e}] Batch [{s.k - s.stride}-{s.k}]\tSpeed: {128 / s.dt:.2f} samples/sec\t"
            f"accuracy=0.12\tloss={s.loss:.3f}"
        ),
        0.5, 20, 18, 400,
    ),
    "tf_slim": Program(
        lambda s: f"INFO:tensorflow:global step {s.n}: loss = {s.loss:.4f} ({s.dt:.3f} sec/step)",
        0.4, 10, 24,
    ),
    "swin": Program(
        lambda s: (
            f"[{s.at()} swin_t](main.py 231): INFO Train: [{s.e}/300][{s.k}/{s.size}]\teta 0:05:10 lr 0.000010\t "
            f"wd 0.0500\ttime {s.last:.4f} ({s.mean:.4f})\tloss {s.loss:.4f} ({s.loss:.4f})\tgrad_norm 1.1 (1.2)\t"
            "loss_scale 65536.0000 (65536.0000)\tmem 9121MB"
        ),
        0.33, 10, 24, 300, first=0,
    ),
}  # fmt: skip
"""Programs by name; excerpts are rendered from them with the variants below."""

VARIANTS: dict[str, Callable[[Program], list[str]]] = {
    "plain": lambda program: list(simulated(program)),
    "resumed": resumed,
    "two_ranks": two_ranks,
    "coloured": coloured,
    "cut": cut,
    "crowded": crowded,
}
