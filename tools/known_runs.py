"""Write docs/explanation/known-runs.md: well-known runs, predicted as a user would type them."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import paceline

PAGE = Path(__file__).parent.parent / "docs" / "explanation" / "known-runs.md"

DENSE, EXPERTS = 0.15, 0.25
"""Errors within which a prediction needs no explanation."""


@dataclass(frozen=True)
class KnownRun:
    """A run with a published figure, and the options that state it.

    ``known`` is a range in ``unit``; ``reason`` explains an error beyond ``tolerance``.
    """

    title: str
    model: str
    known: tuple[float, float]
    unit: str
    source: str
    options: Mapping[str, Any] = field(default_factory=dict)
    tokens: float = 0.0
    tolerance: float = DENSE
    reason: str = ""

    def said(self) -> tuple[float, bool]:
        """The predicted figure in ``unit``, and whether the plan is said to fit."""
        found = paceline.predict(self.model, **self.options)
        return _figure(found, self.unit, self.tokens), bool(found.fits)

    def error(self, said: float) -> float:
        """Relative distance to the nearest end of the known range."""
        low, high = self.known
        return said / high - 1.0 if said > high else min(0.0, said / low - 1.0)


def _figure(found: paceline.Prediction, unit: str, tokens: float) -> float:
    if unit == "TFLOP/s per device":
        return found.training_flops / found.step_seconds / found.devices / 1e12
    if unit == "s per step":
        return found.step_seconds
    if unit == "images/s per device":
        return found.samples_per_second / found.devices
    per_second = found.tokens_per_second or 0.0
    if unit == "tokens/s":
        return per_second
    return tokens / per_second / 3600.0 * found.devices / 1e3


H100 = {"device": "h100_sxm_80gb"}
A100 = {"device": "a100_sxm_80gb"}
KORTHIKANTI = "arXiv 2205.05198, table 5"


def _korthikanti(
    model: str, seconds: float, recompute: str, *, is_sharded: bool, reason: str = ""
) -> KnownRun:
    """A run of Korthikanti et al.: 22B on one node, 175B in a pipeline of 8 nodes."""
    large = model == "gpt3_175b"
    plan = {"pp": 8, "interleave": 3, "global_batch": 64, "micro_batch": 1} if large else {}
    return KnownRun(
        f"{model} on {64 if large else 8} A100, {recompute} recomputation",
        model,
        (seconds, seconds),
        "s per step",
        KORTHIKANTI,
        {
            **A100,
            "topology": "8x8" if large else "1x8",
            "framework": "megatron-lm",
            "tp": 8,
            "seq": 2048,
            "recompute": recompute,
            "sequence_parallel": is_sharded,
            **(plan or {"global_batch": 4, "micro_batch": 4}),
        },
        reason=reason,
    )


RUNS = (
    KnownRun(
        "Llama 3 405B on 16,384 H100",
        "llama3_405b",
        (400.0, 400.0),
        "TFLOP/s per device",
        "arXiv 2407.21783, table 4",
        {
            **H100,
            "topology": "2048x8",
            "framework": "megatron-lm",
            "tp": 8,
            "pp": 16,
            "zero": 2,
            "global_batch": 2048,
            "seq": 8192,
        },
    ),
    KnownRun(
        "Mixtral 8x7B on 128 H100",
        "mixtral_8x7b",
        (430.0, 470.0),
        "TFLOP/s per device",
        "Megatron Core, documentation of experts",
        {
            **H100,
            "topology": "16x8",
            "framework": "nemo",
            "pp": 4,
            "ep": 8,
            "global_batch": 256,
            "micro_batch": 1,
        },
        tolerance=EXPERTS,
        reason="the wait of experts for the host was fitted to 2 to 64 experts on a device; here "
        "it is one, which no row of the fit has",
    ),
    KnownRun(
        "DeepSeek-V3 on 2,048 H800, per 10^12 tokens",
        "deepseek_v3",
        (180.0, 180.0),
        "thousand device-hours",
        "arXiv 2412.19437, table 1",
        {
            "device": "h800",
            "topology": "256x8",
            "framework": "megatron-core",
            "pp": 16,
            "ep": 64,
            "zero": 1,
            "pipeline": "dualpipe",
            "interleave": 2,
            "global_batch": 15360,
            "micro_batch": 1,
            "precision": "fp8",
            "recompute": "layernorm,mla_up_proj",
        },
        tokens=1e12,
        tolerance=EXPERTS,
    ),
    KnownRun(
        "GPT-3 175B on 1,024 A100",
        "gpt3_175b",
        (140.0, 163.0),
        "TFLOP/s per device",
        "arXiv 2104.04473, table 1 and section 5.1",
        {
            **A100,
            "topology": "128x8",
            "framework": "megatron-lm",
            "tp": 8,
            "pp": 8,
            "global_batch": 1536,
            "recompute": "full",
        },
    ),
    KnownRun(
        "BLOOM 176B on 384 A100, without the FLOP of recomputation",
        "gpt_h14336_l70_a112_v250880",
        (117.0, 117.0),
        "TFLOP/s per device",
        "arXiv 2211.05100, section 3 (156 TFLOP/s with recomputation)",
        {
            **A100,
            "topology": "48x8",
            "framework": "megatron-deepspeed",
            "tp": 4,
            "pp": 12,
            "zero": 1,
            "global_batch": 2048,
            "micro_batch": 2,
            "seq": 2048,
            "recompute": "full",
        },
    ),
    KnownRun(
        "Llama 2 70B on 2,048 A100, 2 x 10^12 tokens",
        "llama2_70b",
        (1720.0, 1720.0),
        "thousand device-hours",
        "arXiv 2307.09288, table 2",
        {**A100, "topology": "256x8", "framework": "torch-fsdp", "zero": 3, "batch": 1},
        tokens=2e12,
    ),
    KnownRun(
        "Llama 3 8B with FSDP on 8 H100",
        "llama3_8b",
        (46_000.0, 53_000.0),
        "tokens/s",
        "torchtitan, documentation of performance",
        {**H100, "topology": "1x8", "framework": "torchtitan"},
    ),
    KnownRun(
        "ResNet-50 in mixed precision on 8 A100",
        "resnet50",
        (2500.0, 3000.0),
        "images/s per device",
        "NVIDIA Deep Learning Examples, MXNet with DALI",
        {
            **A100,
            "topology": "1x8",
            "framework": "mxnet",
            "precision": "amp_fp16",
            "batch": 256,
            "tuning": "reference",
        },
    ),
    _korthikanti("megatron_22b", 1.42, "full", is_sharded=False),
    _korthikanti(
        "megatron_22b",
        1.10,
        "selective",
        is_sharded=True,
        reason="the correction of tuned decoders is shared with NeMo and submissions to MLPerf, "
        "which are faster",
    ),
    _korthikanti("gpt3_175b", 18.13, "full", is_sharded=False),
    _korthikanti("gpt3_175b", 13.75, "selective", is_sharded=True),
)


def table() -> list[str]:
    """One row per run."""
    lines = [
        "| run | known | predicted | error | fits | published in |",
        "|---|---:|---:|---:|---|---|",
    ]
    for run in RUNS:
        said, fits = run.said()
        known = " to ".join(_digits(value) for value in dict.fromkeys(run.known))
        lines.append(
            f"| {run.title} | {known} {run.unit} | {_digits(said)} | {run.error(said):+.0%} | "
            f"{'yes' if fits else 'no'} | {run.source} |"
        )
    return lines


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 100.0 else f"{value:.3g}"


def page() -> str:
    """The page as Markdown."""
    reasons = [f"- {run.title}: {run.reason}" for run in RUNS if run.reason]
    return "\n".join(
        [
            "# Well-known runs",
            "",
            "Written by `python tools/known_runs.py`; do not edit. Each run is predicted from the",
            "options that its report states, without a measurement. Options that are not stated",
            "are the defaults of the program. *error* is the distance to the nearest end of the",
            "known range; a positive error of device-hours means too slow. Errors are within 15 %",
            "(25 % with experts) or explained below (`tests/tools/test_known_runs.py`).",
            "",
            *table(),
            *(["", *reasons] if reasons else []),
            "",
        ]
    )


def main() -> int:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
