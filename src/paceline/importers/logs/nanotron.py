"""nanotron: iteration lines with time, tokens per second and batch.

Format: src/nanotron/trainer.py of huggingface/nanotron.
"""

import re

from paceline.importers.logs.parsing.printed_numbers import NUMBER
from paceline.importers.logs.parsing.step_lines import StepLine, StepLog

READER = StepLog(
    "nanotron",
    "nanotron",
    (("elapsed_time_per_iteration_ms: ", 0.7), ("tokens_per_sec_per_gpu: ", 0.3)),
    steps=(
        StepLine(
            "elapsed_time_per_iteration_ms:",
            re.compile(
                rf"iteration: (?P<step>\d+) / \d+ \|.*?"
                rf"elapsed_time_per_iteration_ms: (?P<ms>{NUMBER}K?) \|"
                rf"(?: tokens_per_sec: (?P<tokens>{NUMBER}[KMG]?) \|)?"
                rf"(?: tokens_per_sec_per_gpu: (?P<tokens_each>{NUMBER}[KMG]?) \|)?"
                rf"(?: global_batch_size: (?P<batch>{NUMBER}K?) \|)?"
                rf"(?: lm_loss: (?P<loss>{NUMBER}))?"
            ),
            averages=False,
        ),
    ),
).reader
