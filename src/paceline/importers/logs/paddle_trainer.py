"""The Trainer of PaddleNLP and PaddleMIX: time and rates of each logging interval."""

import re

from paceline.importers.logs.parsing.printed_numbers import NUMBER
from paceline.importers.logs.parsing.step_lines import SettingLine, StepLine, StepLog

READER = StepLog(
    "paddle-trainer",
    "PaddleNLP and PaddleMIX Trainer",
    (("interval_runtime: ", 0.6), ("interval_steps_per_second: ", 0.3)),
    steps=(
        StepLine(
            "interval_runtime:",
            re.compile(
                rf"\bloss: (?P<loss>{NUMBER}|nan),.*?\bglobal_step: (?P<step>\d+),.*?"
                rf"\binterval_runtime: (?P<interval>{NUMBER}), "
                rf"interval_samples_per_second: (?P<rate>{NUMBER}),"
                rf".*?\binterval_steps_per_second: (?P<steps_rate>{NUMBER})"
            ),
        ),
    ),
    settings=(
        SettingLine("global_batch", re.compile(r"Total train batch size \(w\. .*\) = (\d+)")),
        SettingLine("sequence_length", re.compile(r"\bmax_seq_length\s*: (\d+)")),
    ),
).reader
