"""PyTorch's ImageNet example and the scripts that copy its meters.

Format: imagenet/main.py of pytorch/examples.
"""

import re

from paceline.importers.logs.parsing.printed_numbers import NUMBER
from paceline.importers.logs.parsing.step_lines import SettingLine, StepLine, StepLog

READER = StepLog(
    "pytorch-imagenet",
    "PyTorch ImageNet example",
    (("Epoch: [", 0.3), ("Acc@1", 0.3), ("Prec@1", 0.3), ("\tData ", 0.2), ("\tTime ", 0.2)),
    steps=(
        StepLine(
            "Time",
            re.compile(
                rf"Epoch: \[(?P<epoch>\d+)(?:/\d+)?\] ?\[\s*(?P<step>\d+)/\d+\][:,]?\s+"
                rf"Time:?\s+(?P<now>{NUMBER})s? \(\s*(?P<mean>{NUMBER})s?\)\s+"
                rf"(?:Speed:? +{NUMBER}(?: samples/s| \((?P<rate>{NUMBER})\))\s+)?"
                rf"(?:Data:?\s+{NUMBER}s? \(\s*(?P<data_mean>{NUMBER})s?\)\s+)?"
                rf"(?:Loss:?\s+(?P<loss>{NUMBER}))?"
            ),
            first=1,
        ),
    ),
    settings=(SettingLine("model", re.compile(r"=> creating model '(\w+)'")),),
).reader
