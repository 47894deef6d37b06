"""Logs of programs that train language models: what each prints, as a table."""

import re

from paceline.measurement.readers.numbers import NUMBER
from paceline.measurement.readers.reader import ProgramReader
from paceline.measurement.readers.step_lines import SettingLine, StepLine, StepLog

_N = NUMBER

MEGATRON = StepLog(
    "megatron-lm",
    steps=(
        StepLine(
            "elapsed time per iteration (ms):",
            re.compile(
                rf"(?:samples/sec: (?P<rate>{_N}) \| ?)?iteration\s+(?P<step>\d+)/\s*\d+ \|"
                rf"(?: consumed samples:\s*(?P<consumed>\d+) \|)?(?: skipped samples:\s*\d+ \|)?"
                rf" elapsed time per iteration \(ms\): (?P<ms>{_N}) \|"
                rf"(?: throughput \(token/sec/GPU\): (?P<tokens_each>{_N}) \|)?"
                rf"(?:(?!global batch size|lm loss)[^|]*\|){{0,5}}"
                rf"(?: global batch size:\s*(?P<batch>\d+) \|)?"
                rf"(?: lm loss:? (?P<loss>{_N}) \|)?"
            ),
        ),
    ),
    settings=(
        SettingLine("ranks", re.compile(r"using world size: (\d+)")),
        SettingLine("ranks", re.compile(r"^\s*world_size \.{3,} (\d+)")),
        SettingLine("sequence_length", re.compile(r"^\s*seq_length \.{3,} (\d+)")),
        SettingLine("global_batch", re.compile(r"^\s*global_batch_size \.{3,} (\d+)")),
    ),
    finished=re.compile(r"\[after training is done\]"),
)
NEMO = StepLog(
    "nemo",
    steps=(
        StepLine(
            "train_step_timing in s: ",
            re.compile(
                rf"iteration \d+/\d+ \|.*?global_batch_size: (?P<batch>\d+) \|"
                rf" global_step: (?P<step>\d+) \|(?: max_memory\S*: {_N} \|)?"
                rf" reduced_train_loss: (?P<loss>{_N}) \|"
                rf" train_step_timing in s: (?P<seconds>{_N})"
            ),
            first=0,
        ),
        StepLine(
            "train_step_timing in s=",
            re.compile(
                rf"reduced_train_loss=(?P<loss>{_N}),.*?global_step=(?P<step>{_N}),"
                rf" consumed_samples=(?P<consumed>{_N}), train_step_timing in s=(?P<seconds>{_N})"
            ),
            first=0,
        ),
    ),
    settings=(
        SettingLine(
            "ranks",
            re.compile(r"All distributed processes registered\. Starting with (\d+) processes"),
        ),
    ),
    finished=re.compile(r"`Trainer\.fit` stopped"),
)
FAIRSEQ = StepLog(
    "fairseq",
    steps=(
        StepLine(
            "num_updates",
            re.compile(
                rf"wps\W+(?P<tokens>{_N})\W+ups\W+(?:(?P<steps_rate>[1-9]{_N})|{_N})\W+"
                rf"wpb\W+(?P<amount>{_N})\W+"
                rf"bsz\W+(?P<batch>{_N})\W+num_updates\W+(?P<step>\d+)"
            ),
        ),
    ),
    settings=(
        SettingLine("ranks", re.compile(r"training on (\d+) devices")),
        SettingLine("model", re.compile(r"fairseq_cli\.train \| task: (\w+)")),
    ),
    finished=re.compile(r"done training in "),
)
NANOGPT = StepLog(
    "nanogpt",
    steps=(
        StepLine(
            ", time ",
            re.compile(rf"^iter (?P<step>\d+): loss (?P<loss>{_N}|nan), time (?P<ms>{_N})ms"),
            first=0,
            averages=False,
        ),
    ),
    settings=(
        SettingLine("tokens_per_step", re.compile(r"tokens per iteration will be: ([\d,]+)")),
        SettingLine("parameters", re.compile(r"number of parameters: (\S+)")),
    ),
)
READERS = (
    ProgramReader(
        "megatron-lm",
        "Megatron-LM and its relatives",
        (("elapsed time per iteration (ms):", 0.8), ("consumed samples:", 0.1)),
        MEGATRON,
    ),
    ProgramReader(
        "nemo",
        "NVIDIA NeMo",
        (("train_step_timing in s", 0.9), ("reduced_train_loss", 0.2)),
        NEMO,
    ),
    ProgramReader(
        "fairseq",
        "fairseq",
        (("| train_inner |", 0.6), ("num_updates", 0.2), ("fairseq_cli.train", 0.3), ("wps", 0.1)),
        FAIRSEQ,
    ),
    ProgramReader(
        "nanogpt",
        "nanoGPT",
        (("ms, mfu ", 0.7), ("tokens per iteration will be:", 0.5)),
        NANOGPT,
    ),
)
