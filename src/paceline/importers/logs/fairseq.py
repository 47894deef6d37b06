"""fairseq: ``train_inner`` lines, and the progress lines of versions before 2019."""

import re

from paceline.importers.logs.parsing.printed_numbers import NUMBER
from paceline.importers.logs.parsing.step_lines import SettingLine, StepLine, StepLog

READER = StepLog(
    "fairseq",
    "fairseq",
    (
        ("| train_inner |", 0.6),
        ("num_updates", 0.2),
        ("fairseq_cli.train", 0.3),
        ("wps", 0.1),
        (", wpb=", 0.3),
        ("| epoch 0", 0.3),
    ),
    steps=(
        StepLine(
            "num_updates",
            re.compile(
                rf"wps\W+(?P<tokens>{NUMBER})\W+ups\W+(?:(?P<steps_rate>[1-9]{NUMBER})|{NUMBER}|inf)\W+"
                rf"wpb\W+(?P<amount>{NUMBER})\W+bsz\W+(?P<batch>{NUMBER})\W+num_updates\W+(?P<step>\d+)"
                rf"\b(?!.*\boom=)(?:.*\bwall\W+(?P<wall>{NUMBER}))?"
            ),
        ),
        # Until 2019 rates were means since the start of the epoch or process: use the wall clock.
        StepLine(
            "num_updates",
            re.compile(
                rf"wps=.*?bsz=(?P<batch>{NUMBER}), num_updates=(?P<step>\d+),.*?"
                rf"\boom=.*?\bwall=(?P<elapsed>{NUMBER})"
            ),
        ),
        StepLine(
            "wpb=",
            re.compile(
                rf"\| epoch (?P<epoch>\d+):?\s+(?P<step>\d+) / \d+ loss=.*?"
                rf"wps=(?P<tokens>{NUMBER}), (?:ups=\S+ )?wpb=(?P<amount>{NUMBER}),"
                rf" bsz=(?P<batch>{NUMBER}),"
                rf"(?!.*num_updates)"
            ),
        ),
    ),
    settings=(
        SettingLine("ranks", re.compile(r"training on (\d+) devices")),
        SettingLine("model", re.compile(r"fairseq_cli\.train \| task: (\w+)")),
    ),
    finished=re.compile(r"done training in "),
).reader
