"""semseg, Pointcept and related segmentation trainers."""

import re

from paceline.importers.logs.parsing.printed_numbers import NUMBER
from paceline.importers.logs.parsing.step_lines import StepLine, StepLog

READER = StepLog(
    "semseg",
    "semseg, Pointcept and derivatives",
    ((" Remain ", 0.4), (") Batch ", 0.2), (" Data ", 0.1)),
    steps=(
        StepLine(
            " Batch ",
            re.compile(
                rf"(?:Train|Epoch): \[(?P<epoch>\d+)/\d+\]\[(?P<step>\d+)/\d+\]\s+"
                rf"Data {NUMBER} \((?P<data_mean>{NUMBER})\)\s+"
                rf"Batch (?P<now>{NUMBER}) \((?P<mean>{NUMBER})\)\s+"
                rf"Remain \S+\s+(?i:\w*loss):? (?P<loss>{NUMBER})"
            ),
        ),
    ),
).reader
