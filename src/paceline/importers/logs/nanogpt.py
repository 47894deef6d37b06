"""nanoGPT: a line per logged iteration with its time.

Format: train.py of karpathy/nanoGPT.
"""

import re

from paceline.importers.logs.parsing.printed_numbers import NUMBER
from paceline.importers.logs.parsing.step_lines import SettingLine, StepLine, StepLog

READER = StepLog(
    "nanogpt",
    "nanoGPT",
    (("ms, mfu ", 0.7), ("tokens per iteration will be:", 0.5)),
    steps=(
        StepLine(
            ", time ",
            re.compile(
                rf"^iter (?P<step>\d+): loss (?P<loss>{NUMBER}|nan), time (?P<ms>{NUMBER})ms"
            ),
            first=0,
            averages=False,
        ),
    ),
    settings=(
        SettingLine("tokens_per_step", re.compile(r"tokens per iteration will be: ([\d,]+)")),
        SettingLine("parameters", re.compile(r"number of parameters: (\S+)")),
    ),
).reader
