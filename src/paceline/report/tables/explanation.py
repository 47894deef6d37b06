"""An explanation as lines, a table and JSON: from the ideal step to the measured one."""

from typing import Any

from paceline.analyse.explain import Explanation
from paceline.report.table import Column, Table
from paceline.report.terminal import table_lines, waterfall_heading, waterfall_lines


def explanation_title(explanation: Explanation) -> str:
    """The configuration, and the part of perfect scaling that it reaches."""
    return f"{explanation.measured.words}: {explanation.efficiency:.0%} of perfect scaling"


def phases_table(explanation: Explanation) -> Table | None:
    """Exposed milliseconds by rank and phase of an instrumented step, where one was seen."""
    if not explanation.phases:
        return None
    phases = list(dict.fromkeys(p for parts in explanation.phases for p in parts.exposed))
    return Table(
        (Column("rank"), *(Column(str(p), "ms", scale=1e3, decimals=1) for p in phases)),
        tuple(
            (str(rank), *(parts.exposed.get(p) for p in phases))
            for rank, parts in enumerate(explanation.phases)
        ),
        note="An instrumented step; communication is what nothing hides, waiting included.",
    )


def explanation_lines(explanation: Explanation) -> list[str]:
    """The whole explanation as plain lines."""
    table = phases_table(explanation)
    return [
        f" {waterfall_heading(explanation.waterfall, explanation_title(explanation))}",
        *waterfall_lines(explanation.waterfall.items),
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
    return {
        "processes": explanation.measured.first.world_size,
        "efficiency": explanation.efficiency,
        "measured_step_seconds": explanation.measured.step.mean,
        "ideal_step_seconds": explanation.alone.step.mean,
        "waterfall": [
            {**entry, "note": item.note}
            for entry, item in zip(
                waterfall_json(explanation), explanation.waterfall.items, strict=True
            )
        ],
        "phases_by_rank": [
            {f"{phase}_seconds": value for phase, value in parts.exposed.items()}
            for parts in explanation.phases
        ],
        "missing": list(explanation.missing),
    }
