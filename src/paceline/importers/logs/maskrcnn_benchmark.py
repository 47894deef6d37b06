"""maskrcnn-benchmark and the trainers derived from it."""

import re

from paceline.importers.logs.parsing.printed_numbers import NUMBER
from paceline.importers.logs.parsing.step_lines import SettingLine, StepLine, StepLog

READER = StepLog(
    "maskrcnn-benchmark",
    "maskrcnn-benchmark and derivatives",
    (("maskrcnn_benchmark.trainer", 0.5), ("  max mem: ", 0.2), ("eta: ", 0.1), ("  iter: ", 0.3)),
    steps=(
        StepLine(
            "max mem:",
            re.compile(
                rf"\beta: .*?\biter: (?P<step>\d+)\s+loss: (?P<loss>{NUMBER}) .*?"
                rf"\btime: (?P<now>{NUMBER}) \((?P<mean>{NUMBER})\)\s+"
                rf"data: {NUMBER} \((?P<data_mean>{NUMBER})\).*?max mem: \d+"
            ),
        ),
    ),
    settings=(
        SettingLine("ranks", re.compile(r"Using (\d+) GPUs")),
        SettingLine("global_batch", re.compile(r"^\s*IMS_PER_BATCH: (\d+)")),
    ),
    finished=re.compile(r"Total training time"),
).reader
