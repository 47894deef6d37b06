"""PaddlePaddle projects: lines with ``batch_cost`` and ``ips``."""

import re

from paceline.importers.logs.parsing.printed_numbers import NUMBER
from paceline.importers.logs.parsing.step_lines import StepLine, StepLog

_STEPS = (
    r"\bEpoch:? \[(?P<epoch>\d+)\] \[\s*(?P<step>\d+)/\d+\]",
    r"\[Epoch (?P<epoch>\d+)/\d+\]\s*\[Iter: (?P<step>\d+)/\d+\]",
    r"\bepoch:(?P<epoch>\d+)\s*,?\s+train step:(?P<step>\d+)",
    r"\[Pass (?P<epoch>\d+), train batch (?P<step>\d+)\]",
    r"(?:global[ _]step:?|\biter[:=]?|\bbatch:) *(?P<step>\d+)",
)
"""Step counters: PaddleDetection, PaddleClas (new, old), PaddlePaddle models, all others."""


def _step_pattern(step: str) -> re.Pattern[str]:
    """A training line; input wait, rate per device and loss occur in any order."""
    ahead = (
        rf"(?=.*?\b(?:avg_)?batch_cost[:= ]+(?P<seconds>{NUMBER}))",
        rf"(?=.*?\b(?:avg_)?(?:reader|data)_cost[:= ]+(?P<data>{NUMBER})|)",
        rf"(?=.*?\bavg_samples: (?P<each>{NUMBER})|)",
        rf"(?=.*?\bips[: ]+(?P<rate_each>{NUMBER})(?! (?:tokens|words))|)",
        rf"(?=.*?[ ,']loss\W+(?P<loss>{NUMBER})|)",
    )
    return re.compile(rf"^(?!.*(?:\bvalid |\[Eval\]|\[EVAL\]|\bEND )).*?{step}{''.join(ahead)}")


READER = StepLog(
    "paddle",
    "PaddlePaddle projects",
    (("batch_cost", 0.6), ("reader_cost", 0.2), ("ips", 0.2)),
    steps=tuple(StepLine("batch_cost", _step_pattern(step), first=0) for step in _STEPS),
).reader
