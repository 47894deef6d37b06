"""llm.c: a line per step with milliseconds and tokens per second.

Format: train_gpt2.cu of karpathy/llm.c.
"""

import re

from paceline.importers.logs.parsing.printed_numbers import NUMBER
from paceline.importers.logs.parsing.step_lines import SettingLine, StepLine, StepLog

READER = StepLog(
    "llm.c",
    "llm.c",
    ((" tok/s", 0.2), ("% bf16 MFU | ", 0.6), ("| total batch size ", 0.2)),
    steps=(
        StepLine(
            " tok/s",
            re.compile(
                rf"^step\s+(?P<step>\d+)/\d+ \| loss (?P<loss>{NUMBER}) .*?\| "
                rf"(?P<ms>{NUMBER}) ms \| [-\d.]+% \w+ MFU \| (?P<tokens>{NUMBER}) tok/s"
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
).reader
