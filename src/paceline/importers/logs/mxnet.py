"""MXNet: the ``Speedometer`` callback's samples per second.

Format: python/mxnet/callback.py of apache/mxnet.
"""

import re

from paceline.importers.logs.parsing.printed_numbers import NUMBER
from paceline.importers.logs.parsing.step_lines import StepLine, StepLog

READER = StepLog(
    "mxnet",
    "MXNet Speedometer",
    (("Speed: ", 0.3), (" samples/sec", 0.3)),
    steps=(
        StepLine(
            "samples/sec",
            re.compile(
                rf"(?:(?:Epoch|Iter)\[(?P<epoch>\d+)\] )?Batch ?\[(?:\d+-)?(?P<step>\d+)\]\s+"
                rf"Speed: (?P<rate>{NUMBER}) samples/sec"
            ),
        ),
    ),
    own_rates=True,
).reader
