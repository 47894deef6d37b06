"""NVIDIA NeMo: Lightning progress lines with ``train_step_timing``."""

import re

from paceline.importers.logs.parsing.printed_numbers import NUMBER
from paceline.importers.logs.parsing.step_lines import SettingLine, StepLine, StepLog

READER = StepLog(
    "nemo",
    "NVIDIA NeMo",
    (("train_step_timing in s", 0.9), ("reduced_train_loss", 0.2), ("DLLL {", -0.5)),
    steps=(
        StepLine(
            "train_step_timing in s: ",
            re.compile(
                rf"iteration \d+/\d+ \|.*?global_batch_size: (?P<batch>\d+) \|"
                rf" global_step: (?P<step>\d+) \|(?: max_memory\S*: {NUMBER} \|)?"
                rf" reduced_train_loss: (?P<loss>{NUMBER}) \|"
                rf" train_step_timing in s: (?P<seconds>{NUMBER})"
            ),
            first=0,
        ),
        StepLine(
            "train_step_timing in s=",
            re.compile(
                rf"reduced_train_loss=(?P<loss>{NUMBER}),.*?global_step=(?P<step>{NUMBER}),"
                rf" consumed_samples=(?P<consumed>{NUMBER}),"
                rf" train_step_timing in s=(?P<seconds>{NUMBER})"
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
).reader
