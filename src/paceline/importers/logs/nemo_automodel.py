"""NVIDIA NeMo AutoModel: step lines with tokens per second."""

import re

from paceline.importers.logs.parsing.printed_numbers import NUMBER
from paceline.importers.logs.parsing.step_lines import StepLine, StepLog

READER = StepLog(
    "nemo-automodel",
    "NVIDIA NeMo AutoModel",
    ((" | tps ", 0.4), ("/gpu) | ", 0.3), (" | grad_norm ", 0.1)),
    steps=(
        StepLine(
            "| tps ",
            re.compile(
                rf"\| step (?P<step>\d+) \| epoch \d+ \| loss (?P<loss>{NUMBER}) \|.*?"
                rf"\| tps (?P<tokens>{NUMBER})\((?P<tokens_each>{NUMBER})/gpu\)"
            ),
            averages=False,
        ),
    ),
).reader
