"""mmengine, the runner of the current mm* projects.

Format: mmengine/runner/log_processor.py of open-mmlab/mmengine.
"""

import re

from paceline.importers.logs.parsing.printed_numbers import NUMBER
from paceline.importers.logs.parsing.step_lines import SettingLine, StepLine, StepLog

READER = StepLog(
    "mmengine",
    "mmengine (mm* projects)",
    (("(train)", 0.4), ("mmengine", 0.4)),
    steps=(
        StepLine(
            "(train)",
            re.compile(
                rf"(?:Epoch\(train\)\s+\[(?P<epoch>\d+)\]|Iter\(train\) )\s*"
                rf"\[\s*(?P<step>\d+)/\d+\].*? time: (?P<seconds>{NUMBER})"
                rf"(?:\s+data_time: (?P<data>{NUMBER}))?"
                rf"(?:.*? loss: (?P<loss>{NUMBER}))?"
            ),
        ),
    ),
    settings=(
        SettingLine("ranks", re.compile(r"^\s*GPU number: (\d+)")),
        SettingLine("ranks", re.compile(r"^\s*Distributed training: \w+, GPU number: (\d+)")),
    ),
).reader
