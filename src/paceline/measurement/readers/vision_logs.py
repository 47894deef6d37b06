"""Programs for images that print steps: what each prints, and what it is known by, as a table."""

import re

from paceline.measurement.readers.numbers import NUMBER
from paceline.measurement.readers.step_lines import SettingLine, StepLine, StepLog

_N = NUMBER

TIMM = StepLog(
    "timm",
    "timm's training script",
    (("Train: ", 0.2), ("/s)  LR: ", 0.6)),
    steps=(
        StepLine(
            "Train: ",
            re.compile(
                rf"Train: (?P<epoch>\d+) \[\s*(?P<step>\d+)/\d+ \(\s*\d+%\)\].*?"
                rf"Loss: (?P<loss>{_N}) .*?Time: (?P<now>{_N})s,\s*{_N}/s\s+"
                rf"\((?P<mean>{_N})s,\s*(?P<rate>{_N})/s\)"
                rf"(?:.*?Data: {_N} \((?P<data_mean>{_N})\))?"
            ),
            first=0,
        ),
    ),
    settings=(
        SettingLine("ranks", re.compile(r"Process \d+, total (\d+)")),
        SettingLine("model", re.compile(r"Model (\S+) created, param count")),
        SettingLine("batch_per_rank", re.compile(r"^batch_size: (\d+)")),
    ),
)
IMAGENET = StepLog(
    "pytorch-imagenet",
    "PyTorch's ImageNet example",
    (("Epoch: [", 0.3), ("Acc@1", 0.3), ("Prec@1", 0.3), ("\tData ", 0.2), ("\tTime ", 0.2)),
    steps=(
        StepLine(
            "Time",
            re.compile(
                rf"Epoch: \[(?P<epoch>\d+)(?:/\d+)?\] ?\[\s*(?P<step>\d+)/\d+\][:,]?\s+"
                rf"Time:?\s+(?P<now>{_N})s? \(\s*(?P<mean>{_N})s?\)\s+"
                rf"(?:Speed:? +{_N}(?: samples/s| \((?P<rate>{_N})\))\s+)?"
                rf"(?:Data:?\s+{_N}s? \(\s*(?P<data_mean>{_N})s?\)\s+)?"
                rf"(?:Loss:?\s+(?P<loss>{_N}))?"
            ),
            first=1,
        ),
    ),
    settings=(SettingLine("model", re.compile(r"=> creating model '(\w+)'")),),
)
MMENGINE = StepLog(
    "mmengine",
    "mmengine (mm* projects)",
    (("(train)", 0.4), ("mmengine", 0.4)),
    steps=(
        StepLine(
            "(train)",
            re.compile(
                rf"(?:Epoch\(train\)\s+\[(?P<epoch>\d+)\]|Iter\(train\) )\s*"
                rf"\[\s*(?P<step>\d+)/\d+\].*? time: (?P<seconds>{_N})"
                rf"(?:\s+data_time: (?P<data>{_N}))?"
                rf"(?:.*? loss: (?P<loss>{_N}))?"
            ),
        ),
    ),
    settings=(
        SettingLine("ranks", re.compile(r"^\s*GPU number: (\d+)")),
        SettingLine("ranks", re.compile(r"^\s*Distributed training: \w+, GPU number: (\d+)")),
    ),
)
MMCV = StepLog(
    "mmcv",
    "mmcv (older mm* projects)",
    ((", data_time: ", 0.5), (" - mm", 0.3)),
    steps=(
        StepLine(
            "data_time:",
            re.compile(
                rf"(?:Epoch \[(?P<epoch>\d+)\]|Iter )\[(?P<step>\d+)/\d+\].*?"
                rf" time: (?P<seconds>{_N}), data_time: (?P<data>{_N})(?:.*? loss: (?P<loss>{_N}))?"
            ),
        ),
    ),
)
DETECTRON2 = StepLog(
    "detectron2",
    "detectron2",
    (("utils.events]:", 0.9), ("utils.events INFO:", 0.9)),
    steps=(
        StepLine(
            "utils.events",
            re.compile(
                rf"iter: (?P<step>\d+)\s+total_loss: (?P<loss>{_N})"
                rf"(?:.*?\btime: (?P<mean>{_N}))?(?:.*?\bdata_time: (?P<data>{_N}))?"
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
)
SEMSEG = StepLog(
    "semseg",
    "semseg, Pointcept and their relatives",
    ((" Remain ", 0.4), (") Batch ", 0.2), (" Data ", 0.1)),
    steps=(
        StepLine(
            " Batch ",
            re.compile(
                rf"(?:Train|Epoch): \[(?P<epoch>\d+)/\d+\]\[(?P<step>\d+)/\d+\]\s+"
                rf"Data {_N} \((?P<data_mean>{_N})\)\s+Batch (?P<now>{_N}) \((?P<mean>{_N})\)\s+"
                rf"Remain \S+\s+(?i:\w*loss):? (?P<loss>{_N})"
            ),
        ),
    ),
)
MASKRCNN = StepLog(
    "maskrcnn-benchmark",
    "maskrcnn-benchmark and its relatives",
    (("maskrcnn_benchmark.trainer", 0.5), ("  max mem: ", 0.2), ("eta: ", 0.1), ("  iter: ", 0.3)),
    steps=(
        StepLine(
            "max mem:",
            re.compile(
                rf"\beta: .*?\biter: (?P<step>\d+)\s+loss: (?P<loss>{_N}) .*?"
                rf"\btime: (?P<now>{_N}) \((?P<mean>{_N})\)\s+"
                rf"data: {_N} \((?P<data_mean>{_N})\).*?max mem: \d+"
            ),
        ),
    ),
    settings=(
        SettingLine("ranks", re.compile(r"Using (\d+) GPUs")),
        SettingLine("global_batch", re.compile(r"^\s*IMS_PER_BATCH: (\d+)")),
    ),
    finished=re.compile(r"Total training time"),
)
_PADDLE_STEPS = (
    r"\bEpoch:? \[(?P<epoch>\d+)\] \[\s*(?P<step>\d+)/\d+\]",
    r"\[Epoch (?P<epoch>\d+)/\d+\]\s*\[Iter: (?P<step>\d+)/\d+\]",
    r"\bepoch:(?P<epoch>\d+)\s*,?\s+train step:(?P<step>\d+)",
    r"\[Pass (?P<epoch>\d+), train batch (?P<step>\d+)\]",
    r"(?:global[ _]step:?|\biter[:=]?|\bbatch:) *(?P<step>\d+)",
)
"""How Paddle's projects number steps: detection, classification (new, old), models, all others."""


def _paddle(step: str) -> re.Pattern[str]:
    """A line of training; waiting, rate of one device and loss come in any order."""
    ahead = (
        rf"(?=.*?\b(?:avg_)?batch_cost[:= ]+(?P<seconds>{_N}))",
        rf"(?=.*?\b(?:avg_)?(?:reader|data)_cost[:= ]+(?P<data>{_N})|)",
        rf"(?=.*?\bavg_samples: (?P<each>{_N})|)",
        rf"(?=.*?\bips[: ]+(?P<rate_each>{_N})(?! (?:tokens|words))|)",
        rf"(?=.*?[ ,']loss\W+(?P<loss>{_N})|)",
    )
    return re.compile(rf"^(?!.*(?:\bvalid |\[Eval\]|\[EVAL\]|\bEND )).*?{step}{''.join(ahead)}")


PADDLE = StepLog(
    "paddle",
    "PaddlePaddle's projects",
    (("batch_cost", 0.6), ("reader_cost", 0.2), ("ips", 0.2)),
    steps=tuple(StepLine("batch_cost", _paddle(step), first=0) for step in _PADDLE_STEPS),
)

READERS = tuple(
    log.reader for log in (TIMM, IMAGENET, MMENGINE, MMCV, DETECTRON2, SEMSEG, MASKRCNN, PADDLE)
)
