"""MaxText: a line per completed step."""

import re

from paceline.importers.logs.parsing.printed_numbers import NUMBER
from paceline.importers.logs.parsing.step_lines import SettingLine, StepLine, StepLog

READER = StepLog(
    "maxtext",
    "MaxText",
    (("completed step: ", 0.4), ("Tokens/s/device: ", 0.4), ("TFLOP/s/device: ", 0.2)),
    steps=(
        StepLine(
            "completed step:",
            re.compile(
                rf"completed step: (?P<step>\d+), seconds: (?P<seconds>{NUMBER}), "
                rf"TFLOP/s/device: {NUMBER}(?:, Tokens/s/device: (?P<tokens_each>{NUMBER}))?"
                rf"(?:.*?\bloss: (?P<loss>{NUMBER}))?"
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
).reader
