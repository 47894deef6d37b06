"""Rows of a named program as a user types them, and constants fitted to them.

These are the host time of experts and the rate of GB300, which no row of measurements.csv has.

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
from paceline.constants import overridden

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
_LAYER, _EXPERT = (f"overheads.host.experts.{part}" for part in ("layer", "expert"))
_TRIED = tuple((1e-3 * layer, 1e-3 * each) for layer in (3.0, 3.5, 4.0) for each in (0, 0.09, 0.13))
"""Host time of a layer of experts and of each expert on a device, seconds."""
_RATE = "kernels.devices.gb300.products"
_RATES = (1.0, 1.06, 1.12, 1.18)


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
    """Errors of step time by constant, then by group of rows with the shipped constants."""
    lines = ["| layer | expert | rows with experts: bias | mean error |", "|---:|---:|---:|---:|"]
    for layer, each in ((0.0, 0.0), *_TRIED):
        with overridden({_LAYER: layer, _EXPERT: each}):
            found = [one.ratio - 1 for one in scored_rows() if one.has_experts]
        lines.append(
            f"| {1e3 * layer:.1f} ms | {1e3 * each:.2f} ms | {fmean(found):+.1%} | "
            f"{fmean(map(abs, found)):.1%} |"
        )
    lines += ["", "| rate of GB300 | dense rows: bias | mean error |", "|---:|---:|---:|"]
    for rate in _RATES:
        with overridden({_RATE: rate}):
            found = [one.ratio - 1 for one in scored_rows() if not one.has_experts]
        lines.append(f"| {rate:g} | {fmean(found):+.1%} | {fmean(map(abs, found)):.1%} |")
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
