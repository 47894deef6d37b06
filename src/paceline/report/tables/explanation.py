"""An explanation as lines, tables and JSON: from the ideal step to the measured one."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from paceline.analyse.explain import Explanation
from paceline.analyse.finding import Diagnosis, least_share_saved
from paceline.analyse.waterfall import Waterfall
from paceline.report.table import Column, Table
from paceline.report.tables.steps import ranks_table
from paceline.report.terminal import MOST_COLUMNS, table_lines
from paceline.report.terminal_waterfall import waterfall_heading, waterfall_lines
from paceline.report.text import wrap
from paceline.units import format_seconds


def explanation_title(explanation: Explanation) -> str:
    """The configuration, and the part of its step that is ideal."""
    words = explanation.measured.words
    if explanation.alone is None and explanation.profile is None:
        return words
    against = "its own computing"
    if explanation.alone is not None:
        whole = math.isclose(explanation.alone.step.mean, explanation.waterfall.ideal_seconds)
        against = "perfect scaling" if whole else "the ideal step"
    return f"{words}: {explanation.efficiency:.0%} of {against}"


def finding_lines(explanation: Explanation, width: int = MOST_COLUMNS) -> list[str]:
    """Verdict, why and what to do of each finding; that nothing is to be gained where none is."""
    step = explanation.measured.step.mean
    lines: list[str] = []
    for number, finding in enumerate(explanation.findings, start=1):
        for head, words in _finding_words(finding, step, number):
            first, *rest = wrap(words, width - len(head))
            lines += [f"{head}{first}", *(" " * len(head) + line for line in rest)]
    if not lines and explanation.profile is not None:
        lines.append(
            f"Nothing to gain above {least_share_saved():.0%}: no remedy that is known saves more."
        )
    return lines


def findings_table(explanation: Explanation) -> Table | None:
    """The findings as a table; None where steps were not looked into."""
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
        title="What to do",
        note="Per step. What a remedy saves is computed from the measured step; "
        f"remedies are left out that save less than {least_share_saved():.0%} of it.",
    )


def _finding_words(finding: Diagnosis, step: float, number: int) -> Iterator[tuple[str, str]]:
    share, gain = finding.seconds / step, finding.saved_seconds / step
    costs = f"{format_seconds(finding.seconds)} a step, {share:.0%}"
    yield f"{number}. ", f"{finding.verdict} ({costs})"
    yield "   why:  ", f"{finding.why}"
    yield (
        "   next: ",
        f"{finding.remedy}: saves {format_seconds(finding.saved_seconds)} ({gain:.0%})",
    )


def phases_table(explanation: Explanation) -> Table | None:
    """Mean milliseconds by rank and phase, and how often each rank is last, where it was seen."""
    return None if explanation.profile is None else ranks_table(explanation.profile)


def noted_waterfall(explanation: Explanation) -> Waterfall:
    """The waterfall with the part of the step that each item is, and its interval, in its note."""
    step = explanation.measured.step.mean
    items = []
    for item in explanation.waterfall.items:
        words = [f"{item.seconds / step:z.0%}"]
        if math.isfinite(item.half_width):
            words[0] += f" ± {item.half_width / step:.1%}"
        items.append(replace(item, note=", ".join([*words, *filter(None, [item.note])])))
    return Waterfall(tuple(items))


def explanation_lines(explanation: Explanation) -> list[str]:
    """The whole explanation as plain lines."""
    table = phases_table(explanation)
    return [
        f" {waterfall_heading(explanation.waterfall, explanation_title(explanation))}",
        *waterfall_lines(noted_waterfall(explanation).items),
        *finding_lines(explanation),
        *(table_lines(table) if table else ()),
        *missing_lines(explanation),
    ]


def missing_lines(explanation: Explanation) -> list[str]:
    """What the launches do not tell."""
    return [f"not known: {words}" for words in explanation.missing]


def waterfall_json(explanation: Explanation | None) -> list[dict[str, Any]]:
    """The items from the ideal step to the measured one, seconds each."""
    items = explanation.waterfall.items if explanation else ()
    return [{"label": i.label, "seconds": i.seconds, "kind": str(i.kind)} for i in items]


def explanation_json(explanation: Explanation) -> dict[str, Any]:
    """The same facts for programs."""
    profile = explanation.profile
    return {
        "processes": explanation.measured.first.world_size,
        "batch_per_rank": explanation.measured.first.batch_per_rank,
        "efficiency": explanation.efficiency,
        "measured_step_seconds": explanation.measured.step.mean,
        "ideal_step_seconds": explanation.waterfall.ideal_seconds,
        "waterfall": [
            {
                **entry,
                "share": item.seconds / explanation.measured.step.mean,
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
