"""Logs of programs that train image networks: what each prints, as a table."""

import re

from paceline.measurement.readers.numbers import NUMBER
from paceline.measurement.readers.reader import ProgramReader
from paceline.measurement.readers.step_lines import SettingLine, StepLine, StepLog

_N = NUMBER

TIMM = StepLog(
    "timm",
    steps=(
        StepLine(
            "Train: ",
            re.compile(
                rf"Train: (?P<epoch>\d+) \[\s*(?P<step>\d+)/\d+ \(\s*\d+%\)\].*?"
                rf"Loss: (?P<loss>{_N}) .*?Time: {_N}s,\s*{_N}/s\s+"
                rf"\((?P<mean>{_N})s,\s*(?P<rate>{_N})/s\)"
                rf"(?:.*?Data: {_N} \((?P<data>{_N})\))?"
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
    steps=(
        StepLine(
            "Time",
            re.compile(
                rf"Epoch: \[(?P<epoch>\d+)\]\[\s*(?P<step>\d+)/\d+\]\s+"
                rf"Time\s+{_N} \(\s*(?P<mean>{_N})\)\s+"
                rf"Data\s+{_N} \(\s*(?P<data>{_N})\)\s+Loss\s+(?P<loss>{_N}) "
            ),
            first=1,
        ),
    ),
    settings=(SettingLine("model", re.compile(r"=> creating model '(\w+)'")),),
)
MMENGINE = StepLog(
    "mmengine",
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
    steps=(
        StepLine(
            "d2.utils.events]:",
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
    ),
    finished=re.compile(r"Overall training speed|Total training time"),
)
MXNET = StepLog(
    "mxnet",
    steps=(
        StepLine(
            "samples/sec",
            re.compile(
                rf"(?:Epoch|Iter)\[(?P<epoch>\d+)\] Batch ?\[(?:\d+-)?(?P<step>\d+)\]\s+"
                rf"Speed: (?P<rate>{_N}) samples/sec"
            ),
        ),
    ),
)
PADDLE = StepLog(
    "paddle",
    steps=(
        StepLine(
            "avg_batch_cost:",
            re.compile(
                rf"(?:global[ _]step:?|\biter:?|\bbatch:) *(?P<step>\d+).*?"
                rf"avg_batch_cost: (?P<seconds>{_N})(?: sec)?"
                rf"(?:,(?: avg_samples: (?P<each>{_N})\s*,)?.*?\bips: (?P<rate_each>{_N}) "
                rf"(?:images|samples|sequences|img|ins)/s)?"
            ),
            first=0,
        ),
    ),
)

READERS = (
    ProgramReader("timm", "timm's training script", (("Train: ", 0.2), ("/s)  LR: ", 0.6)), TIMM),
    ProgramReader(
        "pytorch-imagenet",
        "PyTorch's ImageNet example",
        (("Epoch: [", 0.3), ("Acc@1", 0.3), ("\tData ", 0.2)),
        IMAGENET,
    ),
    ProgramReader(
        "mmengine", "mmengine (mm* projects)", (("(train)", 0.4), ("mmengine", 0.4)), MMENGINE
    ),
    ProgramReader(
        "mmcv", "mmcv (older mm* projects)", ((", data_time: ", 0.5), (" - mm", 0.3)), MMCV
    ),
    ProgramReader("detectron2", "detectron2", (("d2.utils.events]:", 0.9),), DETECTRON2),
    ProgramReader("mxnet", "MXNet's Speedometer", (("Speed: ", 0.3), (" samples/sec", 0.3)), MXNET),
    ProgramReader("paddle", "PaddlePaddle", (("avg_batch_cost: ", 0.8),), PADDLE),
)
