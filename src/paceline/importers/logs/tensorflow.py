"""TensorFlow estimators and TF-Slim: ``sec/step`` and the seconds since the previous line."""

import re

from paceline.importers.logs.parsing.printed_numbers import NUMBER
from paceline.importers.logs.parsing.step_lines import StepLine, StepLog

READER = StepLog(
    "tensorflow",
    "TensorFlow estimators and TF-Slim",
    (("INFO:tensorflow:", 0.2), (" sec/step)", 0.4), ("global_step/sec: ", 0.3), (" sec)", 0.1)),
    steps=(
        StepLine(
            "sec/step)",
            re.compile(
                rf"global step (?P<step>\d+): loss = (?P<loss>{NUMBER}|nan) "
                rf"\((?P<seconds>{NUMBER}) sec/step\)"
            ),
            averages=False,
        ),
        StepLine(
            " sec)",
            re.compile(
                rf"loss = (?P<loss>{NUMBER}|nan),.*?\bstep = (?P<step>\d+)\b.*?"
                rf"\((?P<interval>{NUMBER}) sec\)"
            ),
        ),
    ),
).reader
