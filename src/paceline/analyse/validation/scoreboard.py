"""The scoreboard: every score as one Markdown page, and the few that are held to."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from paceline.analyse.validation.cases import Mode
from paceline.analyse.validation.scores import Outcome, Score, score
from paceline.analyse.validation.summary import ModeSummary

COMMITTED_FILE = "scoreboard.json"
TOLERANCE = 0.005
"""A score may be worse than the committed one by half a percentage point."""

_DIGITS = 4


@dataclass(frozen=True, slots=True)
class Headline:
    """A figure that is held to: its value, its target, whether the target is an upper bound."""

    name: str
    value: float
    target: float

    @property
    def met(self) -> bool:
        """Whether the target is reached."""
        return self.value <= self.target


def headlines(summaries: Mapping[Mode, ModeSummary]) -> list[Headline]:
    """The figures that the project set itself, each to be at most its target."""
    found: list[Headline] = []
    if Mode.BASELINE in summaries:
        outcomes = summaries[Mode.BASELINE].run.outcomes
        overall = score(outcomes)
        found += [
            Headline("baseline mean error", overall.mean_absolute_error, 0.07),
            Headline("baseline median error", overall.median_absolute_error, 0.03),
            *[
                Headline(f"baseline {family}, several nodes, mean error", _mean(part), 0.09)
                for family in ("hkbu", "dlperf")
                if (part := _rows(outcomes, family, several_nodes=True))
            ],
        ]
    if Mode.COLD in summaries:
        outcomes = summaries[Mode.COLD].run.outcomes
        overall = score(outcomes)
        found += [
            Headline("cold rows skipped", 1.0 - overall.scored / max(1, overall.asked), 0.2),
            Headline("cold mean error", overall.mean_absolute_error, 0.22),
            Headline("cold median error", overall.median_absolute_error, 0.15),
        ]
        for several, name, target in ((False, "one node", 0.15), (True, "64 GPUs", 0.10)):
            part = _rows(outcomes, "vtrain", several_nodes=several)
            if part:
                found.append(Headline(f"cold vtrain, {name}, mean error", _mean(part), target))
    layout = summaries[Mode.LAYOUT].layout if Mode.LAYOUT in summaries else None
    if layout is not None:
        regrets = [c.regret for c in layout.choices if c.group.startswith("vtrain")]
        if regrets:
            found.append(Headline("layout mean regret", sum(regrets) / len(regrets), 0.04))
            found.append(Headline("layout largest regret", max(regrets), 0.25))
    return found


def committed_scores() -> dict[str, float]:
    """The figures that were committed with the package, by name."""
    file = resources.files("paceline") / "data" / "fitted" / COMMITTED_FILE
    document: dict[str, float] = json.loads(file.read_text(encoding="utf-8"))["figures"]
    return document


def scores_to_commit(summaries: Mapping[Mode, ModeSummary]) -> str:
    """The file of `committed_scores` for these summaries."""
    figures = {each.name: round(each.value, _DIGITS) for each in headlines(summaries)}
    return json.dumps({"tolerance": TOLERANCE, "figures": figures}, indent=2) + "\n"


def scoreboard_page(
    by_group: Mapping[Mode, ModeSummary], by_family: Mapping[Mode, ModeSummary], fitted_on: str
) -> str:
    """The page: headlines with targets, then each mode by source, held out both ways."""
    lines = [
        "# Scoreboard",
        "",
        "Written by `paceline validate --scoreboard docs/scoreboard.md`; do not edit.",
        "",
        "Errors are of throughput: |predicted / measured - 1|. Every row is predicted with",
        "constants that were fitted without its group (a table or figure of its source), and in",
        "the second table of each mode without its whole source: what to expect of a program and",
        "machine that nobody measured. Null models need no constants, or one.",
        "",
        f"Fitted on {fitted_on}.",
        "",
        "| figure | reached | target |",
        "|---|---:|---:|",
    ]
    for each in headlines(by_group):
        mark = "" if each.met else " (missed)"
        lines.append(f"| {each.name} | {_percent(each.value)}{mark} | {_percent(each.target)} |")
    for mode, summary in by_group.items():
        lines += ["", f"## {mode}", "", _mode_text(summary), ""]
        lines += _table(summary)
        if mode in by_family:
            lines += ["", "Without the row's whole source:", ""]
            lines += _table(by_family[mode])
    return "\n".join(lines) + "\n"


def _mode_text(summary: ModeSummary) -> str:
    overall = summary.scores[summary.run.model]
    text = f"{overall.scored} of {overall.asked} rows scored."
    if summary.skipped:
        reasons = "; ".join(f"{count}: {reason}" for reason, count in summary.skipped.items())
        text += f" Skipped: {reasons}."
    if summary.layout is not None:
        layout = summary.layout
        rule = layout.to_json()
        text += (
            f" {len(layout.choices)} jobs: mean regret {_percent(layout.mean_regret)}, largest "
            f"{_percent(layout.largest_regret)}, mean rank correlation "
            f"{layout.mean_rank_correlation:.2f}; the rule of thumb (most replicas, then the "
            f"largest micro-batch) {_percent(rule['rule_of_thumb_mean_regret'])} and "
            f"{_percent(rule['rule_of_thumb_largest_regret'])}."
        )
    return text


def _table(summary: ModeSummary) -> list[str]:
    nulls = [name for name in summary.scores if name != summary.run.model]
    lines = [
        "| source | rows | mean | median | bias | 90 % | geometric | covered | width | "
        + " | ".join(f"{name}: mean / median" for name in nulls)
        + " |",
        "|---|" + "---:|" * (8 + len(nulls)),
    ]
    parts = [("all", summary.scores)]
    parts += [(values[0], scores) for values, scores in summary.parts[("family",)].items()]
    for label, scores in parts:
        cells = _cells(scores[summary.run.model])
        lines.append(
            f"| {label} | " + " | ".join([*cells, *(_null(scores[name]) for name in nulls)]) + " |"
        )
    return lines


def _cells(each: Score) -> list[str]:
    return [
        str(each.scored),
        *map(
            _percent,
            (
                each.mean_absolute_error,
                each.median_absolute_error,
                each.bias,
                each.ninetieth_percentile,
                each.geometric_error,
                each.coverage,
                each.median_width,
            ),
        ),
    ]


def _null(each: Score) -> str:
    return f"{_percent(each.mean_absolute_error)} / {_percent(each.median_absolute_error)}"


def _percent(value: Any) -> str:
    if value is None or math.isnan(value):
        return "-"
    return f"{100 * value:.1f} %"


def _rows(outcomes: Sequence[Outcome], family: str, *, several_nodes: bool) -> list[Outcome]:
    return [
        outcome
        for outcome in outcomes
        if outcome.asked
        and outcome.measurement.configuration.family == family
        and (outcome.measurement.configuration.nodes > 1) is several_nodes
    ]


def _mean(outcomes: Sequence[Outcome]) -> float:
    return score(outcomes).mean_absolute_error
