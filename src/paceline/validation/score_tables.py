"""Scores as tables for the terminal."""

from collections.abc import Mapping

from paceline.render.table import Cell, Column, Table
from paceline.units import plural
from paceline.validation.cases import Mode
from paceline.validation.scores import Score
from paceline.validation.validation_summary import ALWAYS_BY, ModeSummary

_TITLES = {
    Mode.BASELINE: "baseline: predicted from the smallest row of each group",
    Mode.COLD: "cold: predicted from workload, hardware, plan and framework only",
    Mode.LAYOUT: "layout: fastest of several layouts",
}
_MEANING = (
    "Errors are of throughput, in % of the measured one; 90th is the 90th percentile, geo. the "
    "geometric error. covered: measured throughputs inside their 90 % interval, width: median "
    "width of it."
)


def mode_table(summary: ModeSummary) -> Table:
    """Scores of the model, overall and by group, with the mean error of each null model."""
    nulls = [name for name in summary.scores if name != summary.run.model]
    columns = (
        Column("rows of"),
        Column("scored"),
        *(
            Column(title, "%", 100.0, 1)
            for title in ("mean", "median", "bias", "90th", "geo.", "covered", "width")
        ),
        *(Column(f"{name}: mean", "%", 100.0, 1) for name in nulls),
    )
    rows = [_row("all", summary.run.model, nulls, summary.scores)]
    for names, parts in summary.parts.items():
        if len(parts) > 1 or names != (ALWAYS_BY[1],):
            rows += [
                _row(" ".join(values), summary.run.model, nulls, scores)
                for values, scores in parts.items()
            ]
    return Table(columns, tuple(rows), _TITLES[summary.mode], _MEANING)


def skipped_lines(summary: ModeSummary, most: int) -> list[str]:
    """Regret of layouts, reasons for skipped rows, and assumptions about predicted rows."""
    lines = []
    if summary.layout is not None:
        layout = summary.layout
        rule = layout.to_json()
        lines.append(
            f"{plural(len(layout.choices), 'job')}: chosen layouts are {layout.mean_regret:.1%} "
            f"slower than the best on average, {layout.largest_regret:.1%} at most; rank "
            f"correlation {layout.mean_rank_correlation:.2f}. Most replicas first: "
            f"{rule['rule_of_thumb_mean_regret']:.1%} and "
            f"{rule['rule_of_thumb_largest_regret']:.1%}."
        )
    for what, reasons in (
        ("skipped", summary.skipped),
        ("skipped", summary.not_applicable),
        ("predicted with", summary.assumed),
    ):
        shown = list(reasons.items())[:most]
        lines += [f"  {count} {what}: {reason}" for reason, count in shown]
        if len(reasons) > most:
            rest = sum(list(reasons.values())[most:])
            lines.append(f"  {rest} {what} for {len(reasons) - most} further reasons")
    return lines


def _row(label: str, model: str, nulls: list[str], scores: Mapping[str, Score]) -> tuple[Cell, ...]:
    own = scores[model]
    return (
        label,
        own.scored,
        own.mean_absolute_error,
        own.median_absolute_error,
        own.bias,
        own.ninetieth_percentile,
        own.geometric_error,
        own.coverage,
        own.median_width,
        *(scores[name].mean_absolute_error for name in nulls),
    )
