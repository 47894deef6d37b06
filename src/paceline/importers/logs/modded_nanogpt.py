"""modded-nanogpt and its forks: lines with the training time so far."""

import re

from paceline.importers.logs.parsing.printed_numbers import NUMBER
from paceline.importers.logs.parsing.step_lines import StepLine, StepLog

READER = StepLog(
    "modded-nanogpt",
    "modded-nanogpt and derivatives",
    ((" step_avg:", 0.5), ("train_time:", 0.4)),
    steps=(
        StepLine(
            "train_time:",
            re.compile(
                rf"^step:(?P<step>\d+)/\d+ (?:train_loss:(?P<loss>{NUMBER}) )?(?:val_loss:\S+ )?"
                rf"(?:val_bpb:\S+ )?train_time:(?P<elapsed_ms>{NUMBER})ms"
            ),
        ),
    ),
).reader
