"""The scoreboard: every score as one Markdown page, and the few that are held to."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paceline.analyse.validation.cases import Mode
from paceline.analyse.validation.scores import Outcome, Score, score
from paceline.analyse.validation.summary import ModeSummary

TOLERANCE = 0.005
"""A figure may be worse than the committed page says by half a percentage point."""

_PERCENT = re.compile(r"(-?[0-9.]+) %")
_HEADLINE_CELLS = 4


@dataclass(frozen=True, slots=True)
class Headline:
    """A figure that is held to: its value, and the target that it is to stay below."""

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


def headlines_of_page(page: str) -> dict[str, float]:
    """The figures of a page that was written before, by name."""
    found = {}
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        match = _PERCENT.match(cells[1]) if len(cells) == _HEADLINE_CELLS else None
        if match is not None:
            found[cells[0]] = float(match[1]) / 100.0
    return found


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
        "constants that were fitted without its group (a table or figure of its source) and",
        "without every other row in which the same ran; and, in the second table of each mode,",
        "without its whole source: what to expect of a program and machine that nobody measured.",
        "`predictor alone` has no fitted effects: it is what `paceline predict` says. Null models",
        "need no constants, or one per source.",
        "",
        "The constants of the catalogue itself were set with sight of a few of these rows: the",
        "rate of attention of llm_foundry, megatron and vtrain, the issuing time of",
        "megatron-deepspeed of vtrain, the rate of PCIe of hkbu.",
        "",
        f"A test fails when a figure gets worse by more than {100 * TOLERANCE:g} points.",
        "",
        f"Fitted on {fitted_on}.",
        "",
        "| figure | reached | target | without its source |",
        "|---|---:|---:|---:|",
    ]
    apart = {each.name: each.value for each in headlines(by_family)}
    for each in headlines(by_group):
        mark = "" if each.met else " (missed)"
        cells = (f"{_percent(each.value)}{mark}", _percent(each.target))
        lines.append(f"| {each.name} | {' | '.join(cells)} | {_percent(apart.get(each.name))} |")
    for mode, summary in by_group.items():
        lines += ["", f"## {mode}", "", _mode_text(summary), ""]
        lines += _table(summary)
        if mode in by_family:
            choices = _layout_text(by_family[mode])
            lines += ["", f"Without the row's whole source:{choices}", ""]
            lines += _table(by_family[mode])
    return "\n".join(lines) + "\n"


def _mode_text(summary: ModeSummary) -> str:
    overall = summary.scores[summary.run.model]
    text = f"{overall.scored} of {overall.asked} rows scored."
    if summary.skipped:
        reasons = "; ".join(
            f"{count}: {reason.rstrip('.')}" for reason, count in summary.skipped.items()
        )
        text += f" Skipped: {reasons}."
    return text + _layout_text(summary)


def _layout_text(summary: ModeSummary) -> str:
    layout = summary.layout
    if layout is None:
        return ""
    rule = layout.to_json()
    return (
        f" {len(layout.choices)} jobs: mean regret {_percent(layout.mean_regret)}, largest "
        f"{_percent(layout.largest_regret)}, mean rank correlation "
        f"{layout.mean_rank_correlation:.2f}; the rule of thumb (most replicas, then the largest "
        f"micro-batch) {_percent(rule['rule_of_thumb_mean_regret'])} and "
        f"{_percent(rule['rule_of_thumb_largest_regret'])}."
    )


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
