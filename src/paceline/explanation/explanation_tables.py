"""An explanation as lines, tables and JSON: from the ideal step to the measured one."""

import math
from collections.abc import Iterator
from typing import Any

from paceline.constants import number
from paceline.explanation.explain_step import Explanation
from paceline.explanation.finding import Diagnosis, least_share_saved
from paceline.render.number_format import short_number
from paceline.render.safe_text import wrap
from paceline.render.step_tables import ranks_table
from paceline.render.table import Column, Table
from paceline.render.terminal import terminal_width
from paceline.step.waterfall import ItemKind, WaterfallItem
from paceline.units import format_seconds, plural, seconds_unit


def explanation_title(explanation: Explanation) -> str:
    """The observed configuration."""
    return explanation.observed.description


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
        f"Instrumented launches, compared with plain ones: {'+' if more > 0 else '-'}"
        f"{format_seconds(abs(more))}{interval} "
        f"({len(observed.launches)} of {format_seconds(observed.step.mean)}, "
        f"{len(plain.launches)} of {format_seconds(plain.step.mean)})."
    ]


def verdict_of(explanation: Explanation) -> str:
    """The verdict in one or two sentences: the first cause of the job, or that it is healthy."""
    step = explanation.observed.step.mean
    if explanation.profile is None and explanation.alone is None and not explanation.findings:
        return ""
    others = [one for one in explanation.findings if not one.of_the_job]
    machine = "".join(f" {_cost(one, step)}." for one in others)
    unknown, own = explanation.waterfall.unexplained_seconds, explanation.own_seconds
    before = ""
    if abs(unknown) > number("explain.finding.unattributed") * own:
        before = f"{format_seconds(unknown)} of {format_seconds(step)} are unattributed. "
    if explanation.bottlenecks:
        return f"{before}{_cost(explanation.bottlenecks[0], step)}.{machine}"
    compute = format_seconds(explanation.waterfall.ideal_seconds)
    left = f"{compute} of {format_seconds(own)}"
    if others:
        left += " that the rest of the machine leaves"
    if not explanation.healthy:
        return f"{before}No cause exceeds its noise: {left} is compute; repeat the launch.{machine}"
    minor = [one.saved_seconds for one in explanation.findings if one.of_the_job]
    largest = f" No change would save more than {max(minor) / own:.0%}." if minor else ""
    return f"Healthy: {left} is compute.{largest}{machine}"


def _cost(finding: Diagnosis, step: float) -> str:
    """``Thread oversubscription costs 78 ms of 173 ms (45 %) [70 ms, 86 ms]``."""
    name = finding.verdict.partition(":")[0] if finding.of_the_job else str(finding.cause)
    low, high = finding.seconds - finding.half_width, finding.seconds + finding.half_width
    text = (
        f"{name[:1].upper()}{name[1:]}: {format_seconds(finding.seconds)} of "
        f"{format_seconds(step)} ({finding.seconds / step:.0%})"
    )
    if math.isfinite(finding.half_width):
        text += f" [{format_seconds(max(0.0, low))}, {format_seconds(high)}]"
    return text


def interval_line(explanation: Explanation) -> str:
    """What the intervals are, once."""
    if explanation.by_steps:
        return "[low, high] is a 95 % interval over the steps of one launch; repeat the launch."
    return (
        "[low, high] is the 95 % interval over launches (Student's t)."
        if len(explanation.observed.launches) > 1
        else ""
    )


def parts_table(explanation: Explanation) -> Table:
    """The parts of the observed step, which sum to it; those of one process alone beside them."""
    step = explanation.observed.step.mean
    scale, unit = seconds_unit(step)
    count = plural(explanation.observed.first.world_size, "process")
    alone = explanation.alone_waterfall
    before = {} if alone is None else {item.label: item.seconds for item in alone.items}
    rows: list[tuple[Any, ...]] = []
    for item in explanation.waterfall.items:
        own = before.get(_general(item.label)) if alone is not None else None
        if item.label.startswith("CPU contention") and "CPU contention" in before:
            own = before.pop("CPU contention", None)
        interval = f"[{short_number(_low(item) * scale)}, {short_number(_high(item) * scale)}]"
        finite = math.isfinite(item.half_width)
        note = item.note
        if finite and item.kind is ItemKind.CAUSE and abs(item.seconds) <= item.half_width:
            note = ", ".join(filter(None, ["not distinguishable from zero", note]))
        rows.append((item.label, item.seconds, interval if finite else "", own, note))
    total = None if alone is None else alone.total_seconds
    rows.append(("step", explanation.waterfall.total_seconds, "", total, ""))
    columns = [
        Column("part"),
        Column(count, unit, scale=scale, decimals=_decimals(step * scale)),
        Column("interval"),
        Column("1 process", unit, scale=scale, decimals=_decimals(step * scale)),
        Column(""),
    ]
    kept = [0, 1, *([2] if any(row[2] for row in rows) else []), *([3] if alone else []), 4]
    return Table(
        tuple(columns[index] for index in kept),
        tuple(tuple(row[index] for index in kept) for row in rows),
        title=f"Where {count} spend a step",
        note=" ".join(filter(None, ["Parts sum to the step.", interval_line(explanation)])),
    )


def _general(label: str) -> str:
    """The label of a part without the kind of a stall or the rank of a straggler."""
    return label.partition(":")[0] if label.startswith(("stalls", "straggler")) else label


def _decimals(value: float) -> int:
    return 1 if value < 1000 else 0


def _low(item: WaterfallItem) -> float:
    return item.seconds - item.half_width


def _high(item: WaterfallItem) -> float:
    return item.seconds + item.half_width


def level_lines(explanation: Explanation) -> list[str]:
    """Means of launches from one process alone to the ranks with communication."""
    levels = explanation.levels
    if len(levels) < 2:
        return []
    texts = [f"{levels[0].label} {format_seconds(levels[0].seconds)}"]
    for level in levels[1:]:
        sign = "+" if level.added_seconds >= 0 else "-"
        text = f"{level.label} {sign}{format_seconds(abs(level.added_seconds))}"
        if math.isfinite(level.half_width):
            low, high = (level.added_seconds + s * level.half_width for s in (-1.0, 1.0))
            text += f" [{format_seconds(low)}, {format_seconds(high)}]"
            text += "" if level.distinguishable else " (not distinguishable from zero)"
        texts.append(text)
    return [f"Levels: {'; '.join(texts)}."]


def finding_lines(explanation: Explanation, width: int | None = None) -> list[str]:
    """Verdict, evidence, remedy and assumption of each finding."""
    width = width or terminal_width()
    step = explanation.observed.step.mean
    lines: list[str] = []
    for rank, finding in enumerate(explanation.findings, start=1):
        for head, text in _describe_finding(finding, step, rank, explanation.study_command):
            first, *rest = wrap(text, width - len(head))
            lines += [f"{head}{first}", *(" " * len(head) + line for line in rest)]
    return lines


def findings_table(explanation: Explanation) -> Table | None:
    """The findings as a table; None without any."""
    if not explanation.findings:
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


def _describe_finding(
    finding: Diagnosis, step: float, rank: int, again: str
) -> Iterator[tuple[str, str]]:
    share, gain = finding.seconds / step, finding.saved_seconds / step
    costs = f"{format_seconds(finding.seconds)} per step, {share:.0%}"
    if math.isfinite(finding.half_width):
        low, high = (finding.seconds + s * finding.half_width for s in (-1.0, 1.0))
        costs += f", [{format_seconds(max(0.0, low))}, {format_seconds(high)}]"
    yield f"{rank}. ", f"{finding.verdict} ({costs})"
    yield "   why:  ", f"{finding.why}"
    saves = f"saves {format_seconds(finding.saved_seconds)} ({gain:.0%})"
    saves += f" if {finding.assumes}" if finding.assumes else ""
    yield "   next: ", f"{finding.remedy}: {saves}"
    if finding.trial and again:
        yield "   try:  ", f"{again} --try {finding.trial}"


def phases_table(explanation: Explanation) -> Table | None:
    """Mean time by rank and phase, and how often each rank is last; None without a profile."""
    return None if explanation.profile is None else ranks_table(explanation.profile)


def missing_lines(explanation: Explanation) -> list[str]:
    """Missing measurements, each with the command that collects it."""
    return [f"not measured: {one}" for one in explanation.missing]


def waterfall_json(explanation: Explanation | None) -> list[dict[str, Any]]:
    """The items from the ideal step to the measured one, seconds each."""
    items = explanation.waterfall.items if explanation else ()
    return [{"label": i.label, "seconds": i.seconds, "kind": str(i.kind)} for i in items]


def finite(value: float) -> float | None:
    """A number of JSON: None for NaN."""
    return value if math.isfinite(value) else None


def explanation_json(explanation: Explanation) -> dict[str, Any]:
    profile = explanation.profile
    more, width = explanation.instrumented_difference or (None, None)
    return {
        "processes": explanation.measured.first.world_size,
        "batch_per_rank": explanation.measured.first.batch_per_rank,
        "verdict": verdict_of(explanation),
        "healthy": explanation.healthy,
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
        "one_process": [
            {"label": item.label, "seconds": item.seconds}
            for item in (explanation.alone_waterfall.items if explanation.alone_waterfall else ())
        ],
        "levels": [
            {
                "label": level.label,
                "seconds": level.seconds,
                "added_seconds": level.added_seconds,
                "half_width_seconds": finite(level.half_width),
            }
            for level in explanation.levels
        ],
        "findings": [
            {
                "cause": str(finding.cause),
                "seconds": finding.seconds,
                "half_width_seconds": finite(finding.half_width),
                "saved_seconds": finding.saved_seconds,
                "verdict": finding.verdict,
                "why": finding.why,
                "remedy": finding.remedy,
                "assumes": finding.assumes,
                "try": finding.trial,
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
