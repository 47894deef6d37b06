"""detectron2: lines of its ``CommonMetricPrinter``.

Format: detectron2/utils/events.py of facebookresearch/detectron2.
"""

import re

from paceline.importers.logs.parsing.printed_numbers import NUMBER
from paceline.importers.logs.parsing.step_lines import SettingLine, StepLine, StepLog

READER = StepLog(
    "detectron2",
    "detectron2",
    (("utils.events]:", 0.9), ("utils.events INFO:", 0.9)),
    steps=(
        StepLine(
            "utils.events",
            re.compile(
                rf"iter: (?P<step>\d+)\s+total_loss: (?P<loss>{NUMBER})"
                rf"(?:.*?\btime: (?P<mean>{NUMBER}))?(?:.*?\bdata_time: (?P<data>{NUMBER}))?"
            ),
            first=0,
        ),
    ),
    settings=(
        SettingLine("ranks", re.compile(r"d2\.utils\.env\]: .*world_size[=: ]+(\d+)")),
        SettingLine("global_batch", re.compile(r"^\s*IMS_PER_BATCH: (\d+)")),
        SettingLine("begun_at", re.compile(r"Starting training from iteration (\d+)")),
    ),
    finished=re.compile(r"Overall training speed|Total training time"),
).reader
