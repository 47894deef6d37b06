"""timm's training script: running means per epoch.

Format: train.py of huggingface/pytorch-image-models.
"""

import re

from paceline.importers.logs.parsing.printed_numbers import NUMBER
from paceline.importers.logs.parsing.step_lines import SettingLine, StepLine, StepLog

READER = StepLog(
    "timm",
    "timm training script",
    (("Train: ", 0.2), ("/s)  LR: ", 0.6)),
    steps=(
        StepLine(
            "Train: ",
            re.compile(
                rf"Train: (?P<epoch>\d+) \[\s*(?P<step>\d+)/\d+ \(\s*\d+%\)\].*?"
                rf"Loss: (?P<loss>{NUMBER}) .*?Time: (?P<now>{NUMBER})s,\s*{NUMBER}/s\s+"
                rf"\((?P<mean>{NUMBER})s,\s*(?P<rate>{NUMBER})/s\)"
                rf"(?:.*?Data: {NUMBER} \((?P<data_mean>{NUMBER})\))?"
            ),
            first=0,
        ),
    ),
    settings=(
        SettingLine("ranks", re.compile(r"Process \d+, total (\d+)")),
        SettingLine("model", re.compile(r"Model (\S+) created, param count")),
        SettingLine("batch_per_rank", re.compile(r"^batch_size: (\d+)")),
    ),
).reader
