"""LitGPT: iteration lines with their time.

Format: litgpt/pretrain.py of Lightning-AI/litgpt.
"""

import re

from paceline.importers.logs.parsing.printed_numbers import NUMBER
from paceline.importers.logs.parsing.step_lines import StepLine, StepLog

READER = StepLog(
    "litgpt",
    "LitGPT",
    ((" | iter time: ", 0.7), (" | loss train: ", 0.2)),
    steps=(
        StepLine(
            "iter time:",
            re.compile(
                rf"iter (?P<step>\d+) step (?P=step) \| loss train: (?P<loss>{NUMBER}|nan), .*?"
                rf"\| iter time: (?P<ms>{NUMBER}) ms"
            ),
            averages=False,
        ),
    ),
).reader
