"""Rows of a named program as a user types them, and the host time of experts fitted to them.

The rows are those of data/reference/megatron_bridge.csv: options are those that a row states, with
``--framework megatron-bridge`` and no tuning.
"""

import csv
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean, median
from typing import Any

import paceline
from paceline.constants import constant, overridden

FILE = Path(paceline.__file__).parent / "data" / "reference" / "megatron_bridge.csv"
MODELS = {
    "GPT OSS 120B": "gpt_oss_120b",
    "LLAMA3_70B": "llama3_70b",
    "Nemotron_3_Nano": "nemotron3_nano_30b_a3b",
    "Nemotron_3_5_Lightning": "nemotron3_nano_30b_a3b",
    "Nemotron_3_Super": "nemotron3_super_120b_a12b",
    "Nemotron_3_Ultra": "nemotron3_ultra_550b_a55b",
}
SYSTEMS = {
    "DGX-GB300": ("gb300", 4),
    "DGX-GB200": ("gb200", 4),
    "DGX-B300": ("b300_sxm", 8),
    "DGX-B200": ("b200_sxm", 8),
    "DGX-H100": ("h100_sxm_80gb", 8),
}
"""Device and devices per node."""
_LORA_RANK = 16
_DEGREES = {"TP": "tp", "PP": "pp", "CP": "cp", "EP": "ep"}
_TRIED = (0.0, 0.6, 0.8, 0.9, 1.0, 1.1, 1.2)
"""Factors on the host time of experts."""


@dataclass(frozen=True)
class Scored:
    """One row: predicted over measured step, whether the interval covers it, and the verdict."""

    group: str
    has_experts: bool
    ratio: float
    covered: bool
    fits: bool


def options_of(row: Mapping[str, str]) -> dict[str, Any]:
    """The options that a row states."""
    device, per_node = SYSTEMS[row["System"]]
    devices = int(row["#-GPUs"])
    options: dict[str, Any] = {
        "device": device,
        "topology": f"{max(1, devices // per_node)}x{min(devices, per_node)}",
        "framework": "megatron-bridge",
        "precision": row["Precision"].lower(),
        "global_batch": int(row["GBS"]),
        "micro_batch": int(row["MBS"]),
        "seq": int(row["Sequence Length"]),
    }
    for column, name in _DEGREES.items():
        if row[column].isdigit() and int(row[column]) > 1:
            options[name] = int(row[column])
    if row["VP"].isdigit() and options.get("pp", 1) > 1:
        options["interleave"] = int(row["VP"])
    if row["FSDP"] not in ("", "0"):
        options["zero"] = 3
    return options | ({"lora": _LORA_RANK} if row["mode"].startswith("LoRA") else {})


def scored_rows() -> list[Scored]:
    """Every row, predicted with the constants in force."""
    predicted = cache(lambda name, given: paceline.predict(name, **dict(given)))
    found = []
    for row in _rows():
        name, options = MODELS[row["model"]], options_of(row)
        prediction = predicted(name, tuple(options.items()))
        tokens = options["global_batch"] * options["seq"]
        measured = tokens / float(row["Tokens / sec / GPU"]) / prediction.devices
        low, high = prediction.step_interval_seconds
        found.append(
            Scored(
                f"{row['model']}, {row['System'].removeprefix('DGX-')}, {row['Precision']}",
                "ep" in options,
                prediction.step_seconds / measured,
                bool(low <= measured <= high),
                bool(prediction.fits),
            )
        )
    return found


def programs_table() -> str:
    """Errors of step time by host time of experts, then by group of rows with the shipped one."""
    lines = ["| host time | rows with experts: bias | mean error |", "|---:|---:|---:|"]
    names = [f"overheads.host.experts.{way}" for way in ("forward", "backward")]
    shipped = {name: constant(name).value for name in names}
    for factor in _TRIED:
        with overridden({name: factor * value for name, value in shipped.items()}):
            found = [one for one in scored_rows() if one.has_experts]
        bias = fmean(one.ratio for one in found) - 1
        error = fmean(abs(one.ratio - 1) for one in found)
        total = 1e3 * factor * sum(shipped.values())
        lines.append(f"| {total:.1f} ms | {bias:+.1%} | {error:.1%} |")
    rows = scored_rows()
    groups = defaultdict(list)
    for one in rows:
        groups[one.group].append(one)
    lines += ["", "| rows | number | bias | mean error | covered | said to fit |"]
    lines += ["|---|---:|---:|---:|---:|---:|"]
    for name, own in [*sorted(groups.items()), ("all", rows)]:
        ratios = [one.ratio - 1 for one in own]
        covered, fits = (
            fmean(values) for values in zip(*((o.covered, o.fits) for o in own), strict=True)
        )
        lines.append(
            f"| {name} | {len(own)} | {fmean(ratios):+.1%} | {fmean(map(abs, ratios)):.1%} | "
            f"{covered:.0%} | {fits:.0%} |"
        )
    middle = median(abs(one.ratio - 1) for one in rows)
    return "\n".join([*lines, "", f"Median error of step time: {middle:.1%}"])


def _rows() -> Iterator[dict[str, str]]:
    text = FILE.read_text(encoding="utf-8").splitlines()
    yield from csv.DictReader(line for line in text if not line.startswith("#"))
