"""Megatron-LM and the programs that print its iteration lines (Megatron-DeepSpeed, GPT-NeoX).

Format: `training_log` in megatron/training/training.py of NVIDIA/Megatron-LM.
"""

import re

from paceline.importers.logs.parsing.printed_numbers import NUMBER
from paceline.importers.logs.parsing.step_lines import SettingLine, StepLine, StepLog

_STEP = (
    rf"iteration\s+(?P<step>\d+)/\s*\d+ \|"
    rf"(?: consumed samples:\s*(?P<consumed>\d+) \|)?"
    rf"(?: (?:consumed tokens|skipped samples):\s*\d+ \|)?"
    rf" elapsed time per iteration \((?:ms\): (?P<ms>{NUMBER})|s\): (?P<seconds>{NUMBER})) \|"
    rf"(?: throughput \(token/sec/GPU\): (?P<tokens_each>{NUMBER}) \|)?"
    rf"(?:(?!global batch size|lm loss)[^|]*\|){{0,5}}"
    rf"(?: global batch size:\s*(?P<batch>\d+) \|)?"
    rf"(?: lm loss:? (?P<loss>{NUMBER}) \|)?"
)
READER = StepLog(
    "megatron-lm",
    "Megatron-LM and derivatives (GPT-NeoX, Megatron-DeepSpeed)",
    (("elapsed time per iteration (", 0.8), ("consumed samples:", 0.1)),
    steps=(
        StepLine(
            "samples per second: ",
            re.compile(rf"{_STEP}.*? samples per second: (?P<rate>{NUMBER}) \|"),
        ),
        StepLine(
            "elapsed time per iteration (",
            re.compile(rf"(?:samples/sec: (?P<rate>{NUMBER}) \| ?)?{_STEP}"),
        ),
    ),
    settings=(
        SettingLine("ranks", re.compile(r"using world size: (\d+)")),
        SettingLine("ranks", re.compile(r"^\s*world_size \.{3,} (\d+)")),
        SettingLine("sequence_length", re.compile(r"^\s*seq_length \.{3,} (\d+)")),
        SettingLine("global_batch", re.compile(r"^\s*global_batch_size \.{3,} (\d+)")),
    ),
    finished=re.compile(r"\[after training is done\]"),
).reader
