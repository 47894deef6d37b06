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
NANOTRON = StepLog(
    "nanotron",
    "nanotron",
    (("elapsed_time_per_iteration_ms: ", 0.7), ("tokens_per_sec_per_gpu: ", 0.3)),
    steps=(
        StepLine(
            "elapsed_time_per_iteration_ms:",
            re.compile(
                rf"iteration: (?P<step>\d+) / \d+ \|.*?"
                rf"elapsed_time_per_iteration_ms: (?P<ms>{_N}K?) \|"
                rf"(?: tokens_per_sec: (?P<tokens>{_N}[KMG]?) \|)?"
                rf"(?: tokens_per_sec_per_gpu: (?P<tokens_each>{_N}[KMG]?) \|)?"
                rf"(?: global_batch_size: (?P<batch>{_N}K?) \|)?(?: lm_loss: (?P<loss>{_N}))?"
            ),
            averages=False,
        ),
    ),
)
AUTOMODEL = StepLog(
    "nemo-automodel",
    "NVIDIA NeMo AutoModel",
    ((" | tps ", 0.4), ("/gpu) | ", 0.3), (" | grad_norm ", 0.1)),
    steps=(
        StepLine(
            "| tps ",
            re.compile(
                rf"\| step (?P<step>\d+) \| epoch \d+ \| loss (?P<loss>{_N}) \|.*?"
                rf"\| tps (?P<tokens>{_N})\((?P<tokens_each>{_N})/gpu\)"
            ),
            averages=False,
        ),
    ),
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
                rf"wps\W+(?P<tokens>{_N})\W+ups\W+(?:(?P<steps_rate>[1-9]{_N})|{_N}|inf)\W+"
                rf"wpb\W+(?P<amount>{_N})\W+bsz\W+(?P<batch>{_N})\W+num_updates\W+(?P<step>\d+)"
                rf"\b(?!.*\boom=)(?:.*\bwall\W+(?P<wall>{_N}))?"
            ),
        ),
        # Until 2019 rates were means since the epoch or the process began: the clock tells.
        StepLine(
            "num_updates",
            re.compile(
                rf"wps=.*?bsz=(?P<batch>{_N}), num_updates=(?P<step>\d+),.*?"
                rf"\boom=.*?\bwall=(?P<elapsed>{_N})"
            ),
        ),
        StepLine(
            "wpb=",
            re.compile(
                rf"\| epoch (?P<epoch>\d+):?\s+(?P<step>\d+) / \d+ loss=.*?"
                rf"wps=(?P<tokens>{_N}), (?:ups=\S+ )?wpb=(?P<amount>{_N}), bsz=(?P<batch>{_N}),"
                rf"(?!.*num_updates)"
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
MXNET = StepLog(
    "mxnet",
    "MXNet's Speedometer",
    (("Speed: ", 0.3), (" samples/sec", 0.3)),
    steps=(
        StepLine(
            "samples/sec",
            re.compile(
                rf"(?:(?:Epoch|Iter)\[(?P<epoch>\d+)\] )?Batch ?\[(?:\d+-)?(?P<step>\d+)\]\s+"
                rf"Speed: (?P<rate>{_N}) samples/sec"
            ),
        ),
    ),
    own_rates=True,
)
TENSORFLOW = StepLog(
    "tensorflow",
    "TensorFlow's estimators and TF-Slim",
    (("INFO:tensorflow:", 0.2), (" sec/step)", 0.4), ("global_step/sec: ", 0.3), (" sec)", 0.1)),
    steps=(
        StepLine(
            "sec/step)",
            re.compile(
                rf"global step (?P<step>\d+): loss = (?P<loss>{_N}|nan) "
                rf"\((?P<seconds>{_N}) sec/step\)"
            ),
            averages=False,
        ),
        StepLine(
            " sec)",
            re.compile(
                rf"loss = (?P<loss>{_N}|nan),.*?\bstep = (?P<step>\d+)\b.*?"
                rf"\((?P<interval>{_N}) sec\)"
            ),
        ),
    ),
)
READERS = tuple(
    log.reader
    for log in (
        MEGATRON,
        NANOTRON,
        NEMO,
        AUTOMODEL,
        FAIRSEQ,
        NANOGPT,
        MXNET,
        TENSORFLOW,
    )
)
