"""Swin Transformer's training script and its forks: running means per epoch."""

import re

from paceline.importers.logs.parsing.printed_numbers import NUMBER
from paceline.importers.logs.parsing.step_lines import SettingLine, StepLine, StepLog

READER = StepLog(
    "swin",
    "Swin Transformer training script and derivatives",
    (("INFO Train: [", 0.5), ("\teta ", 0.2), ("\tgrad_norm ", 0.2)),
    steps=(
        StepLine(
            "Train: [",
            re.compile(
                rf"Train: \[(?P<epoch>\d+)/\d+\]\[(?P<step>\d+)/\d+\]\s+eta .*?"
                rf"\btime (?P<now>{NUMBER}) \((?P<mean>{NUMBER})\)\s+"
                rf"(?:\w+ {NUMBER} \({NUMBER}\)\s+)??loss (?P<loss>{NUMBER}) "
            ),
            first=0,
        ),
    ),
    settings=(SettingLine("batch_per_rank", re.compile(r"^\s*BATCH_SIZE: (\d+)")),),
).reader
