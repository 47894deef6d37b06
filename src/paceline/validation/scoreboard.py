"""The scoreboard: accuracy of predictions under each hold-out, as one page."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from paceline.predictor.uncertainty.covariates import DECODER
from paceline.validation.cases import Mode
from paceline.validation.hold_out import PROTOCOLS, HoldOut, level_of
from paceline.validation.layouts import (
    Verdicts,
    layout_choices,
    scored_layouts,
    top_regret,
    verdicts,
)
from paceline.validation.paceline_model import PacelineModel
from paceline.validation.published_row import PublishedRow
from paceline.validation.row_step_model import row_covariates
from paceline.validation.run_validation import Run, run_model
from paceline.validation.scores import RowOutcome, Score, score
from paceline.validation.validation_summary import null_models

FEWEST_ROWS = 10
"""Least number of rows for comparing a source with the null models."""
NULL_ALLOWANCE = 1.1
_TYPED_DEVICES = ("a100", "h100")


@dataclass(frozen=True)
class ProtocolScore:
    """Scores of one mode under one hold-out: the model, the best null model, and by source.

    ``coverage_by_source`` is the coverage with equal weight per source.
    """

    mode: Mode
    hold_out: HoldOut
    score: Score
    coverage_by_source: float
    nulls: Mapping[str, Score]
    by_source: Mapping[str, tuple[Score, Score]]

    @property
    def best_null(self) -> Score:
        """The null model with the least mean error."""
        return min(self.nulls.values(), key=_mean_or_infinite)

    def worse_than_null(self) -> list[tuple[str, Score, Score]]:
        """Sources with enough rows and an error more than 10 % above the best null model."""
        return [
            (source, own, null)
            for source, (own, null) in self.by_source.items()
            if own.scored >= FEWEST_ROWS
            and own.mean_absolute_error > NULL_ALLOWANCE * _mean_or_infinite(null)
        ]


def protocol_score(
    measurements: Sequence[PublishedRow], mode: Mode, hold_out: HoldOut
) -> ProtocolScore:
    applicable = [row for row in measurements if level_of(row.configuration, hold_out)]
    ids = {row.configuration.id for row in applicable}
    own = _of(run_model(measurements, mode, PacelineModel(hold_out), only=ids), ids)
    nulls = {
        null.name: _of(run_model(measurements, mode, null, only=ids), ids)
        for null in null_models(mode, measurements)
    }
    scored = {outcome.measurement.configuration.id for outcome in own if outcome.forecast}
    compared = {name: [o for o in outcomes if _id(o) in scored] for name, outcomes in nulls.items()}
    sources = sorted(
        {outcome.measurement.configuration.family for outcome in own if outcome.applicable}
    )
    return ProtocolScore(
        mode,
        hold_out,
        score(own),
        _coverage_by_source(own),
        {name: score(outcomes) for name, outcomes in compared.items()},
        {
            source: (
                score(_family(own, source)),
                min(
                    (score(_family(outcomes, source)) for outcomes in compared.values()),
                    key=_mean_or_infinite,
                ),
            )
            for source in sources
        },
    )


@dataclass(frozen=True)
class Board:
    """Scores by protocol and mode, with only the own group held out, and of layouts."""

    protocols: tuple[ProtocolScore, ...]
    group_held_out: tuple[ProtocolScore, ...]
    layouts: tuple["LayoutScore", ...]
    typed: Mapping[str, Score]

    def pooled(self, mode: Mode) -> tuple[float, float]:
        """Mean and median error of a mode over the protocols together."""
        scores = [each.score for each in self.protocols if each.mode is mode]
        rows = sum(each.scored for each in scores)
        mean = sum(each.scored * each.mean_absolute_error for each in scores) / rows
        medians = sorted((each.median_absolute_error, each.scored) for each in scores)
        passed = np.cumsum([count for _, count in medians])
        return mean, medians[int(np.searchsorted(passed, rows / 2))][0]


@dataclass(frozen=True)
class LayoutScore:
    """Scores of layouts: errors of throughput, and the regret of choosing by prediction."""

    name: str
    jobs: int
    score: Score
    mean_regret: float
    top_three_regret: float
    verdicts: Verdicts


def layout_score(
    name: str, measurements: Sequence[PublishedRow], hold_out: HoldOut | None
) -> LayoutScore:
    """Score the choice of layouts; regret is the extra time of the chosen one."""
    run = run_model(measurements, Mode.LAYOUT, PacelineModel(hold_out))
    choices = layout_choices(run.outcomes)
    return LayoutScore(
        name,
        len(choices),
        score(run.outcomes),
        float(np.mean([choice.regret for choice in choices])),
        float(np.mean(top_regret(run.outcomes, 3))),
        verdicts(run.outcomes),
    )


def typed_scores(measurements: Sequence[PublishedRow]) -> dict[str, Score]:
    """Scores of causal decoders on A100 and H100 as typed, by framework and device."""
    names = {row.configuration.id: _typed_name(row) for row in measurements}
    ids = {row for row, name in names.items() if name}
    typed = PacelineModel(HoldOut.SOURCE, as_typed=True)
    outcomes = _of(run_model(measurements, Mode.COLD, typed, only=ids), ids)
    scores = {
        name: score([outcome for outcome in outcomes if names[_id(outcome)] == name])
        for name in sorted(set(names.values()) - {""})
    }
    return scores | {"all": score(outcomes)}


def _typed_name(row: PublishedRow) -> str:
    """Framework and device of a row that `typed_scores` scores, else empty."""
    device = row.configuration.device
    if not device.startswith(_TYPED_DEVICES):
        return ""
    known = row_covariates(row.configuration)
    return f"{known.framework}, {device}" if known.kind == DECODER else ""


def board(
    measurements: Sequence[PublishedRow],
    layouts: Sequence[PublishedRow],
    on_stage: Callable[[str], None] = lambda text: None,
) -> Board:
    """Compute all scores. This takes minutes."""

    def scored(mode: Mode, hold_out: HoldOut) -> ProtocolScore:
        on_stage(f"{mode}, {hold_out} held out")
        return protocol_score(measurements, mode, hold_out)

    modes = (Mode.BASELINE, Mode.COLD)
    protocols = tuple(scored(mode, each) for mode in modes for each in PROTOCOLS)
    group_held_out = tuple(scored(mode, HoldOut.GROUP) for mode in modes)
    on_stage("layouts")
    chosen = (
        layout_score("vtrain, source held out", _vtrain(measurements), HoldOut.SOURCE),
        layout_score("nanotron, source held out", scored_layouts(layouts), HoldOut.SOURCE),
        layout_score("nanotron, model held out", scored_layouts(layouts), HoldOut.MODEL),
    )
    on_stage("programs as typed")
    return Board(protocols, group_held_out, chosen, typed_scores(measurements))


def board_page(found: Board, fitted_on: str) -> str:
    lines = [
        "# Scoreboard",
        "",
        "Written by `paceline validate --scoreboard docs/explanation/scoreboard.md`; do not edit.",
        "",
        "Each row is predicted as `paceline predict` would, with corrections fitted without the",
        "rows that share the property in the first column. Errors are of throughput, |predicted /",
        "measured - 1|. *covered* is the share of rows inside their 90 % interval, *by source* its",
        "mean with equal weight per source, *width* the median of (high - low) / predicted.",
        "Null models: perfect scaling or a ring without overlap from the baseline; FLOP over",
        "peak with one constant per source, fitted to the rows that it is scored on.",
        "",
        f"Fitted on {fitted_on}.",
    ]
    for mode, title in (
        (Mode.BASELINE, "With the smallest run of a group as baseline"),
        (Mode.COLD, "Without a measured baseline"),
    ):
        mean, median = found.pooled(mode)
        lines += ["", f"## {title}", "", *_HEADER]
        lines += [_line(each) for each in found.protocols if each.mode is mode]
        lines += [f"| all six protocols | | {_percent(mean)} | {_percent(median)} | | | | |"]
        lines += ["", "By source, with the source held out:", "", *_SOURCE_HEADER]
        by_source = next(
            each
            for each in found.protocols
            if each.mode is mode and each.hold_out is HoldOut.SOURCE
        )
        lines += [
            f"| {source} | {own.scored} | {_errors(own)} | {_percent(own.bias)} | "
            f"{_percent(own.coverage)} | {_percent(own.median_width)} | {_errors(null)} |"
            for source, (own, null) in by_source.by_source.items()
            if own.scored
        ]
        lines += ["", *_exceptions(each for each in found.protocols if each.mode is mode)]
    lines += ["", "## Programs as typed", "", *_TYPED_TEXT, "", *_TYPED_HEADER]
    lines += [
        f"| {name} | {own.scored} | {_errors(own)} | {_percent(own.bias)} | "
        f"{_percent(own.coverage)} | {_percent(own.median_width)} |"
        for name, own in found.typed.items()
        if own.scored
    ]
    lines += ["", "## Choosing a layout", "", *_LAYOUT_TEXT, "", *_LAYOUT_HEADER]
    lines += [
        f"| {each.name} | {each.jobs} | {each.score.scored} | {_errors(each.score)} | "
        f"{_percent(each.mean_regret)} | {_percent(each.top_three_regret)} | "
        f"{each.verdicts.ran_said_to_fit} of {each.verdicts.ran} | "
        f"{each.verdicts.failed_said_not_to_fit} of {each.verdicts.failed} |"
        for each in found.layouts
    ]
    lines += [
        "",
        "## Only the own table or figure held out",
        "",
        "Other rows of the same program and machine were fitted. This measures memorisation more",
        "than generalisation.",
        "",
        *_HEADER,
        *[_line(each) for each in found.group_held_out],
    ]
    return "\n".join(lines) + "\n"


_HEADER = (
    "| held out | rows | mean | median | covered | by source | width | best null: mean / median |",
    "|---|---:|---:|---:|---:|---:|---:|---:|",
)
_SOURCE_HEADER = (
    "| source | rows | mean / median | bias | covered | width | best null: mean / median |",
    "|---|---:|---:|---:|---:|---:|---:|",
)
_TYPED_TEXT = (
    "Causal decoders on A100 and H100, with the source held out and the default tuning of the",
    "named program (`--framework` without `--tuning`) instead of that of the source.",
)
_TYPED_HEADER = (
    "| program and device | rows | mean / median | bias | covered | width |",
    "|---|---:|---:|---:|---:|---:|",
)
_LAYOUT_TEXT = (
    "Layouts of up to 32 nodes at any utilisation; stalled rows are left out by the rule of",
    "`validation/layouts.py` (`scored_layouts`). The chosen layout is the fastest one that is",
    "predicted to fit; *regret* is its measured step over that of the best one, less one. A failed",
    "row did not always run out of memory.",
)
_LAYOUT_HEADER = (
    "| layouts | jobs | rows | error: mean / median | regret | regret of top 3 "
    "| ran, predicted to fit | failed, predicted not to fit |",
    "|---|---:|---:|---:|---:|---:|---:|---:|",
)


def _line(each: ProtocolScore) -> str:
    own = each.score
    cells = (
        str(own.scored),
        *map(
            _percent,
            (
                own.mean_absolute_error,
                own.median_absolute_error,
                own.coverage,
                each.coverage_by_source,
                own.median_width,
            ),
        ),
        _errors(each.best_null),
    )
    return f"| {each.hold_out} | {' | '.join(cells)} |"


def _exceptions(scores: Iterable[ProtocolScore]) -> list[str]:
    worse = [
        f"{source} ({each.hold_out} held out): {_percent(own.mean_absolute_error)}, "
        f"null {_percent(null.mean_absolute_error)}"
        for each in scores
        for source, own, null in each.worse_than_null()
    ]
    if not worse:
        return [
            "No source with 10 or more rows has an error more than 10 % above the best null model."
        ]
    return [
        "Sources with 10 or more rows and an error more than 10 % above the best null model:",
        "",
    ] + [f"- {text}" for text in worse]


def _of(run: Run, ids: set[str]) -> list[RowOutcome]:
    return [outcome for outcome in run.outcomes if _id(outcome) in ids]


def _id(outcome: RowOutcome) -> str:
    return outcome.measurement.configuration.id


def _family(outcomes: Sequence[RowOutcome], source: str) -> list[RowOutcome]:
    return [o for o in outcomes if o.measurement.configuration.family == source]


def _vtrain(measurements: Sequence[PublishedRow]) -> list[PublishedRow]:
    return [row for row in measurements if row.configuration.family == "vtrain"]


def _coverage_by_source(outcomes: Sequence[RowOutcome]) -> float:
    inside = [
        (o.measurement.configuration.family, f.low <= o.measurement.throughput <= f.high)
        for o in outcomes
        if (f := o.forecast) is not None and f.low is not None and f.high is not None
    ]
    if not inside:
        return math.nan
    counts = Counter(source for source, _ in inside)
    return sum(hit / counts[source] for source, hit in inside) / len(counts)


def _mean_or_infinite(each: Score) -> float:
    return math.inf if math.isnan(each.mean_absolute_error) else each.mean_absolute_error


def _errors(each: Score) -> str:
    return f"{_percent(each.mean_absolute_error)} / {_percent(each.median_absolute_error)}"


def _percent(value: float | None) -> str:
    if value is None or math.isnan(value) or math.isinf(value):
        return "-"
    return f"{100 * value:.1f} %"
