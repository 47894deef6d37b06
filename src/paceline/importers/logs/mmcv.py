"""mmcv, the runner of the older mm* projects.

Format: mmcv/runner/hooks/logger/text.py of open-mmlab/mmcv, version 1.
"""

import re

from paceline.importers.logs.parsing.printed_numbers import NUMBER
from paceline.importers.logs.parsing.step_lines import StepLine, StepLog

READER = StepLog(
    "mmcv",
    "mmcv (older mm* projects)",
    ((", data_time: ", 0.5), (" - mm", 0.3)),
    steps=(
        StepLine(
            "data_time:",
            re.compile(
                rf"(?:Epoch \[(?P<epoch>\d+)\]|Iter )\[(?P<step>\d+)/\d+\].*?"
                rf" time: (?P<seconds>{NUMBER}), data_time: (?P<data>{NUMBER})"
                rf"(?:.*? loss: (?P<loss>{NUMBER}))?"
            ),
        ),
    ),
).reader
