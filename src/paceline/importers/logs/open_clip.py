"""OpenCLIP and OpenLM: lines with samples seen, batch time and rate.

Format: src/open_clip_train/train.py of mlfoundations/open_clip.
"""

import re

from paceline.importers.logs.parsing.printed_numbers import NUMBER
from paceline.importers.logs.parsing.step_lines import StepLine, StepLog

_TIMES = rf"Data \(t\): (?P<data>{NUMBER}) Batch \(t\): (?P<seconds>{NUMBER}), "
READER = StepLog(
    "open-clip",
    "OpenCLIP, OpenLM",
    (("Batch (t): ", 0.5), ("Train Epoch: ", 0.2), ("/s/gpu LR: ", 0.3)),
    steps=(
        StepLine(
            "Batch (t):",
            re.compile(
                rf"Train Epoch: (?P<epoch>\d+) \[\s*(?P<seen>\d+)/\d+ \(\d+%\)\] {_TIMES}"
                rf"(?P<rate>{NUMBER})/s, (?P<rate_each>{NUMBER})/s/gpu"
                rf"(?:.*? Loss: (?P<loss>{NUMBER}) )?"
            ),
        ),
        StepLine(
            "Batch (t):",
            re.compile(
                rf"Train Epoch: (?P<epoch>\d+) \[\s*(?P<seen>\d+)/\d+ \(\d+%\)\] "
                rf"Loss: (?P<loss>{NUMBER}) {_TIMES}"
                rf"(?P<tokens>{NUMBER})/s, (?P<tokens_each>{NUMBER})/s/gpu"
            ),
        ),
        StepLine(
            "Batch (t):",
            re.compile(
                rf"Train Epoch: (?P<epoch>\d+) \[\s*(?P<seen>\d+)/\d+ \(\d+%\)\] "
                rf"(?:Loss: (?P<loss>{NUMBER}) (?:\({NUMBER}\) )?)?Data \(t\): (?P<data>{NUMBER}) "
                rf"Batch \(t\): (?P<seconds>{NUMBER})s?(?:, (?P<rate>{NUMBER})/s)? LR: "
            ),
        ),
    ),
).reader
