"""Programs that print steps: what each prints, and what it is known by, as a table."""

import re

from paceline.measurement.readers.numbers import NUMBER
from paceline.measurement.readers.step_lines import SettingLine, StepLine, StepLog

_N = NUMBER


_MEGATRON_STEP = (
    rf"iteration\s+(?P<step>\d+)/\s*\d+ \|"
    rf"(?: consumed samples:\s*(?P<consumed>\d+) \|)?"
    rf"(?: (?:consumed tokens|skipped samples):\s*\d+ \|)?"
    rf" elapsed time per iteration \((?:ms\): (?P<ms>{_N})|s\): (?P<seconds>{_N})) \|"
    rf"(?: throughput \(token/sec/GPU\): (?P<tokens_each>{_N}) \|)?"
    rf"(?:(?!global batch size|lm loss)[^|]*\|){{0,5}}"
    rf"(?: global batch size:\s*(?P<batch>\d+) \|)?"
    rf"(?: lm loss:? (?P<loss>{_N}) \|)?"
)
MEGATRON = StepLog(
    "megatron-lm",
    "Megatron-LM and its relatives",
    (("elapsed time per iteration (", 0.8), ("consumed samples:", 0.1)),
    steps=(
        StepLine(
            "samples per second: ",
            re.compile(rf"{_MEGATRON_STEP}.*? samples per second: (?P<rate>{_N}) \|"),
        ),
        StepLine(
            "elapsed time per iteration (",
            re.compile(rf"(?:samples/sec: (?P<rate>{_N}) \| ?)?{_MEGATRON_STEP}"),
        ),
    ),
    settings=(
        SettingLine("ranks", re.compile(r"using world size: (\d+)")),
        SettingLine("ranks", re.compile(r"^\s*world_size \.{3,} (\d+)")),
        SettingLine("sequence_length", re.compile(r"^\s*seq_length \.{3,} (\d+)")),
        SettingLine("global_batch", re.compile(r"^\s*global_batch_size \.{3,} (\d+)")),
    ),
    finished=re.compile(r"\[after training is done\]"),
)
NEMO = StepLog(
    "nemo",
    "NVIDIA NeMo",
    (("train_step_timing in s", 0.9), ("reduced_train_loss", 0.2), ("DLLL {", -0.5)),
    steps=(
        StepLine(
            "train_step_timing in s: ",
            re.compile(
                rf"iteration \d+/\d+ \|.*?global_batch_size: (?P<batch>\d+) \|"
                rf" global_step: (?P<step>\d+) \|(?: max_memory\S*: {_N} \|)?"
                rf" reduced_train_loss: (?P<loss>{_N}) \|"
                rf" train_step_timing in s: (?P<seconds>{_N})"
            ),
            first=0,
        ),
        StepLine(
            "train_step_timing in s=",
            re.compile(
                rf"reduced_train_loss=(?P<loss>{_N}),.*?global_step=(?P<step>{_N}),"
                rf" consumed_samples=(?P<consumed>{_N}), train_step_timing in s=(?P<seconds>{_N})"
            ),
            first=0,
        ),
    ),
    settings=(
        SettingLine(
            "ranks",
            re.compile(r"All distributed processes registered\. Starting with (\d+) processes"),
        ),
    ),
    finished=re.compile(r"`Trainer\.fit` stopped"),
)
FAIRSEQ = StepLog(
    "fairseq",
    "fairseq",
    (("| train_inner |", 0.6), ("num_updates", 0.2), ("fairseq_cli.train", 0.3), ("wps", 0.1)),
    steps=(
        StepLine(
            "num_updates",
            re.compile(
                rf"wps\W+(?P<tokens>{_N})\W+ups\W+(?:(?P<steps_rate>[1-9]{_N})|{_N})\W+"
                rf"wpb\W+(?P<amount>{_N})\W+"
                rf"bsz\W+(?P<batch>{_N})\W+num_updates\W+(?P<step>\d+)"
            ),
        ),
    ),
    settings=(
        SettingLine("ranks", re.compile(r"training on (\d+) devices")),
        SettingLine("model", re.compile(r"fairseq_cli\.train \| task: (\w+)")),
    ),
    finished=re.compile(r"done training in "),
)
NANOGPT = StepLog(
    "nanogpt",
    "nanoGPT",
    (("ms, mfu ", 0.7), ("tokens per iteration will be:", 0.5)),
    steps=(
        StepLine(
            ", time ",
            re.compile(rf"^iter (?P<step>\d+): loss (?P<loss>{_N}|nan), time (?P<ms>{_N})ms"),
            first=0,
            averages=False,
        ),
    ),
    settings=(
        SettingLine("tokens_per_step", re.compile(r"tokens per iteration will be: ([\d,]+)")),
        SettingLine("parameters", re.compile(r"number of parameters: (\S+)")),
    ),
)
TIMM = StepLog(
    "timm",
    "timm's training script",
    (("Train: ", 0.2), ("/s)  LR: ", 0.6)),
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
    "PyTorch's ImageNet example",
    (("Epoch: [", 0.3), ("Acc@1", 0.3), ("\tData ", 0.2)),
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
    (("d2.utils.events]:", 0.9),),
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
    "MXNet's Speedometer",
    (("Speed: ", 0.3), (" samples/sec", 0.3)),
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
    "PaddlePaddle",
    (("avg_batch_cost: ", 0.8),),
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

READERS = tuple(
    log.reader
    for log in (
        MEGATRON,
        NEMO,
        FAIRSEQ,
        NANOGPT,
        TIMM,
        IMAGENET,
        MMENGINE,
        MMCV,
        DETECTRON2,
        MXNET,
        PADDLE,
    )
)
