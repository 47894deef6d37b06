"""The ``MetricLogger`` of torchvision's references, DETR, MAE and others.

Format: references/detection/utils.py of pytorch/vision.
"""

import re

from paceline.importers.logs.parsing.printed_numbers import NUMBER
from paceline.importers.logs.parsing.step_lines import StepLine, StepLog

READER = StepLog(
    "metric-logger",
    "MetricLogger (torchvision references, DETR, MAE and others)",
    (("max mem: ", 0.4), ("  data: ", 0.2), ("Epoch: [", 0.1)),
    steps=(
        StepLine(
            "max mem:",
            re.compile(
                rf"^(?:.*\s)?Epoch: \[(?P<epoch>\d+)\]\s+\[\s*(?P<step>\d+)/\d+\]\s.*?"
                rf"\bloss: (?P<loss>{NUMBER}) .*?"
                rf"\btime: (?P<seconds>{NUMBER})  ?data: (?P<data>{NUMBER})  ?max mem: \d+"
            ),
            first=0,
        ),
    ),
).reader
