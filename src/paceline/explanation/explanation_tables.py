"""An explanation as lines, tables and JSON: from the ideal step to the measured one."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from paceline.explanation.explain_step import Explanation
from paceline.explanation.finding import Diagnosis, least_share_saved
from paceline.render.safe_text import wrap
from paceline.render.step_tables import ranks_table
from paceline.render.table import Column, Table
from paceline.render.terminal import terminal_width
from paceline.step.waterfall import Waterfall
from paceline.units import format_seconds, plural


def explanation_title(explanation: Explanation) -> str:
    """The observed configuration and its efficiency."""
    name = explanation.observed.description
    if explanation.alone is None and explanation.profile is None:
        return name
    what = "compute" if explanation.alone is None else "ideal"
    return f"{name}: {explanation.efficiency:.0%} {what}"


def step_kind(explanation: Explanation) -> str:
    """Which launches the last step of the waterfall is from: plain or instrumented ones."""
    return "measured" if explanation.observed is explanation.measured else "instrumented"


def instrumented_lines(explanation: Explanation) -> list[str]:
    """The difference of instrumented and plain launches, if both ran."""
    if explanation.instrumented_difference is None:
        return []
    more, width = explanation.instrumented_difference
    observed, plain = explanation.observed, explanation.measured
    interval = f" ± {format_seconds(width)}" if math.isfinite(width) else ""
    return [
        f"instrumented launches, compared with plain ones: {'+' if more > 0 else '-'}"
        f"{format_seconds(abs(more))}{interval} "
        f"({len(observed.launches)} of {format_seconds(observed.step.mean)}, "
        f"{len(plain.launches)} of {format_seconds(plain.step.mean)})"
    ]


def finding_lines(explanation: Explanation, width: int | None = None) -> list[str]:
    """Verdict, evidence and remedy of each finding; then the unattributed share."""
    step = explanation.observed.step.mean
    width = width or terminal_width()
    lines: list[str] = []
    for number, finding in enumerate(explanation.findings, start=1):
        for head, text in _describe_finding(finding, step, number):
            first, *rest = wrap(text, width - len(head))
            lines += [f"{head}{first}", *(" " * len(head) + line for line in rest)]
    share, count = (
        explanation.waterfall.unexplained_seconds / step,
        len(explanation.observed.launches),
    )
    if abs(share) > least_share_saved() and explanation.profile is not None:
        few = "; run more launches to narrow the intervals" if count > 1 else ""
        mean = f"mean of {plural(count, 'launch')}"
        lines.append(f"{share:.0%} of the step is unattributed ({mean}){few}.")
    elif not lines and explanation.profile is not None:
        lines.append(
            f"No bottleneck found: no known remedy saves more than {least_share_saved():.0%}."
        )
    return lines


def findings_table(explanation: Explanation) -> Table | None:
    """The findings as a table; None if no step was instrumented."""
    if explanation.profile is None:
        return None
    return Table(
        (
            Column("finding"),
            Column("costs", "ms", scale=1e3, decimals=1),
            Column("evidence"),
            Column("remedy"),
            Column("saves", "ms", scale=1e3, decimals=1),
        ),
        tuple(
            (one.verdict, one.seconds, one.why, one.remedy, one.saved_seconds)
            for one in explanation.findings
        ),
        title="Findings and remedies",
        note="Per step. Savings are computed from the measured step; "
        f"remedies that save less than {least_share_saved():.0%} of it are omitted.",
    )


def _describe_finding(finding: Diagnosis, step: float, number: int) -> Iterator[tuple[str, str]]:
    share, gain = finding.seconds / step, finding.saved_seconds / step
    costs = f"{format_seconds(finding.seconds)} per step, {share:.0%}"
    yield f"{number}. ", f"{finding.verdict} ({costs})"
    yield "   why:  ", f"{finding.why}"
    yield (
        "   next: ",
        f"{finding.remedy}: saves {format_seconds(finding.saved_seconds)} ({gain:.0%})",
    )


def phases_table(explanation: Explanation) -> Table | None:
    """Mean time by rank and phase, and how often each rank is last; None without a profile."""
    return None if explanation.profile is None else ranks_table(explanation.profile)


def noted_waterfall(explanation: Explanation) -> Waterfall:
    """The waterfall with each item's share of the step and its interval in the note."""
    step = explanation.observed.step.mean
    items = []
    for item in explanation.waterfall.items:
        share = f"{item.seconds / step:z.0%}"
        if math.isfinite(item.half_width):
            share += f" ± {item.half_width / step:.1%}"
        items.append(replace(item, note=", ".join(filter(None, [share, item.note]))))
    return Waterfall(tuple(items))


def missing_lines(explanation: Explanation) -> list[str]:
    """Missing measurements, each with the command that collects it."""
    return [f"not measured: {one}" for one in explanation.missing]


def waterfall_json(explanation: Explanation | None) -> list[dict[str, Any]]:
    """The items from the ideal step to the measured one, seconds each."""
    items = explanation.waterfall.items if explanation else ()
    return [{"label": i.label, "seconds": i.seconds, "kind": str(i.kind)} for i in items]


def explanation_json(explanation: Explanation) -> dict[str, Any]:
    profile = explanation.profile
    more, width = explanation.instrumented_difference or (None, None)
    return {
        "processes": explanation.measured.first.world_size,
        "batch_per_rank": explanation.measured.first.batch_per_rank,
        "efficiency": explanation.efficiency,
        "measured_step_seconds": explanation.measured.step.mean,
        "observed_step_seconds": explanation.observed.step.mean,
        "observed_launches": len(explanation.observed.launches),
        "instrumented_difference_seconds": more,
        "instrumented_difference_half_width_seconds": width,
        "ideal_step_seconds": explanation.waterfall.ideal_seconds,
        "waterfall": [
            {
                **entry,
                "share": item.seconds / explanation.observed.step.mean,
                "half_width_seconds": item.half_width,
                "note": item.note,
            }
            for entry, item in zip(
                waterfall_json(explanation), explanation.waterfall.items, strict=True
            )
        ],
        "findings": [
            {
                "cause": str(finding.cause),
                "seconds": finding.seconds,
                "saved_seconds": finding.saved_seconds,
                "verdict": finding.verdict,
                "why": finding.why,
                "remedy": finding.remedy,
            }
            for finding in explanation.findings
        ],
        "ranks": [
            {
                "rank": rank.rank,
                "last_share": rank.last_share,
                **{f"{phase}_seconds": value for phase, value in rank.phases.items()},
            }
            for rank in (profile.ranks if profile else ())
        ],
        "missing": list(explanation.missing),
    }
