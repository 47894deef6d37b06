"""Training recipes that print steps: one parser, and a table of what each prints.

`step_logs` has the libraries; these are scripts and trainers that people copy and change.
"""

import re

from paceline.measurement.readers.numbers import NUMBER
from paceline.measurement.readers.step_lines import SettingLine, StepLine, StepLog

_N = NUMBER

MAXTEXT = StepLog(
    "maxtext",
    "MaxText",
    (("completed step: ", 0.4), ("Tokens/s/device: ", 0.4), ("TFLOP/s/device: ", 0.2)),
    steps=(
        StepLine(
            "completed step:",
            re.compile(
                rf"completed step: (?P<step>\d+), seconds: (?P<seconds>{_N}), "
                rf"TFLOP/s/device: {_N}(?:, Tokens/s/device: (?P<tokens_each>{_N}))?"
                rf"(?:.*?\bloss: (?P<loss>{_N}))?"
            ),
            first=0,
            averages=False,
        ),
    ),
    settings=(
        SettingLine("batch_per_rank", re.compile(r"Config param per_device_batch_size: (\d+)\b")),
        SettingLine("sequence_length", re.compile(r"Config param max_target_length: (\d+)\b")),
        SettingLine("model", re.compile(r"Config param model_name: (\S+)")),
        SettingLine("ranks", re.compile(r"Num_devices: (\d+)")),
    ),
)
LITGPT = StepLog(
    "litgpt",
    "LitGPT",
    ((" | iter time: ", 0.7), (" | loss train: ", 0.2)),
    steps=(
        StepLine(
            "iter time:",
            re.compile(
                rf"iter (?P<step>\d+) step (?P=step) \| loss train: (?P<loss>{_N}|nan), .*?"
                rf"\| iter time: (?P<ms>{_N}) ms"
            ),
            averages=False,
        ),
    ),
)
LLM_C = StepLog(
    "llm.c",
    "llm.c",
    ((" tok/s", 0.2), ("% bf16 MFU | ", 0.6), ("| total batch size ", 0.2)),
    steps=(
        StepLine(
            " tok/s",
            re.compile(
                rf"^step\s+(?P<step>\d+)/\d+ \| loss (?P<loss>{_N}) .*?\| "
                rf"(?P<ms>{_N}) ms \| [-\d.]+% \w+ MFU \| (?P<tokens>{_N}) tok/s"
            ),
            averages=False,
        ),
    ),
    settings=(
        SettingLine("ranks", re.compile(r"^\| num_processes\s+\| (\d+)")),
        SettingLine("sequence_length", re.compile(r"^\| sequence length T\s+\| (\d+)")),
        SettingLine("tokens_per_step", re.compile(r"^\| total batch size\s+\| (\d+)")),
    ),
    finished=re.compile(r"^total average iteration time"),
)
MODDED_NANOGPT = StepLog(
    "modded-nanogpt",
    "modded-nanogpt and its relatives",
    ((" step_avg:", 0.5), ("train_time:", 0.4)),
    steps=(
        StepLine(
            "train_time:",
            re.compile(
                rf"^step:(?P<step>\d+)/\d+ (?:train_loss:(?P<loss>{_N}) )?(?:val_loss:\S+ )?"
                rf"(?:val_bpb:\S+ )?train_time:(?P<elapsed_ms>{_N})ms"
            ),
        ),
    ),
)
PADDLE_TRAINER = StepLog(
    "paddle-trainer",
    "PaddleNLP's and PaddleMIX's Trainer",
    (("interval_runtime: ", 0.6), ("interval_steps_per_second: ", 0.3)),
    steps=(
        StepLine(
            "interval_runtime:",
            re.compile(
                rf"\bloss: (?P<loss>{_N}|nan),.*?\bglobal_step: (?P<step>\d+),.*?"
                rf"\binterval_runtime: (?P<interval>{_N}), "
                rf"interval_samples_per_second: (?P<rate>{_N}),"
                rf".*?\binterval_steps_per_second: (?P<steps_rate>{_N})"
            ),
        ),
    ),
    settings=(
        SettingLine("global_batch", re.compile(r"Total train batch size \(w\. .*\) = (\d+)")),
        SettingLine("sequence_length", re.compile(r"\bmax_seq_length\s*: (\d+)")),
    ),
)
_OPEN_CLIP_TIMES = rf"Data \(t\): (?P<data>{_N}) Batch \(t\): (?P<seconds>{_N}), "
OPEN_CLIP = StepLog(
    "open-clip",
    "OpenCLIP, OpenLM",
    (("Batch (t): ", 0.5), ("Train Epoch: ", 0.2), ("/s/gpu LR: ", 0.3)),
    steps=(
        StepLine(
            "Batch (t):",
            re.compile(
                rf"Train Epoch: (?P<epoch>\d+) \[\s*(?P<seen>\d+)/\d+ \(\d+%\)\] {_OPEN_CLIP_TIMES}"
                rf"(?P<rate>{_N})/s, (?P<rate_each>{_N})/s/gpu(?:.*? Loss: (?P<loss>{_N}) )?"
            ),
        ),
        StepLine(
            "Batch (t):",
            re.compile(
                rf"Train Epoch: (?P<epoch>\d+) \[\s*(?P<seen>\d+)/\d+ \(\d+%\)\] "
                rf"Loss: (?P<loss>{_N}) {_OPEN_CLIP_TIMES}"
                rf"(?P<tokens>{_N})/s, (?P<tokens_each>{_N})/s/gpu"
            ),
        ),
        StepLine(
            "Batch (t):",
            re.compile(
                rf"Train Epoch: (?P<epoch>\d+) \[\s*(?P<seen>\d+)/\d+ \(\d+%\)\] "
                rf"(?:Loss: (?P<loss>{_N}) (?:\({_N}\) )?)?Data \(t\): (?P<data>{_N}) "
                rf"Batch \(t\): (?P<seconds>{_N})s?(?:, (?P<rate>{_N})/s)? LR: "
            ),
        ),
    ),
)
METRIC_LOGGER = StepLog(
    "metric-logger",
    "MetricLogger of torchvision's references, DETR, MAE and others",
    (("max mem: ", 0.4), ("  data: ", 0.2), ("Epoch: [", 0.1)),
    steps=(
        StepLine(
            "max mem:",
            re.compile(
                rf"^(?:.*\s)?Epoch: \[(?P<epoch>\d+)\]\s+\[\s*(?P<step>\d+)/\d+\]\s.*?"
                rf"\bloss: (?P<loss>{_N}) .*?"
                rf"\btime: (?P<seconds>{_N})  ?data: (?P<data>{_N})  ?max mem: \d+"
            ),
            first=0,
        ),
    ),
)
SWIN = StepLog(
    "swin",
    "Swin Transformer's script and its relatives",
    (("INFO Train: [", 0.5), ("\teta ", 0.2), ("\tgrad_norm ", 0.2)),
    steps=(
        StepLine(
            "Train: [",
            re.compile(
                rf"Train: \[(?P<epoch>\d+)/\d+\]\[(?P<step>\d+)/\d+\]\s+eta .*?"
                rf"\btime (?P<now>{_N}) \((?P<mean>{_N})\)\s+"
                rf"(?:\w+ {_N} \({_N}\)\s+)??loss (?P<loss>{_N}) "
            ),
            first=0,
        ),
    ),
    settings=(SettingLine("batch_per_rank", re.compile(r"^\s*BATCH_SIZE: (\d+)")),),
)

READERS = tuple(
    log.reader
    for log in (
        MAXTEXT,
        LITGPT,
        LLM_C,
        MODDED_NANOGPT,
        PADDLE_TRAINER,
        OPEN_CLIP,
        METRIC_LOGGER,
        SWIN,
    )
)
