"""Summary of a validation: scores of the model and null models, overall and by group."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from paceline.validation.cases import Mode
from paceline.validation.forecast import RowModel
from paceline.validation.layouts import LayoutChoice, layout_choices, rule_of_thumb_regrets
from paceline.validation.memory_verdicts import MemoryVerdicts, memory_verdicts
from paceline.validation.null_models import FlopsOverPeak, PerfectScaling, RingWithoutOverlap
from paceline.validation.published_row import PublishedRow
from paceline.validation.run_validation import Progress, Run, run_model
from paceline.validation.scores import RowOutcome, Score, score, scores_by

ALWAYS_BY = ("family", "axis")
"""Columns that every summary is grouped by, since a pooled score hides too much."""


@dataclass(frozen=True)
class LayoutSummary:
    """Layouts: regret of the model's choices and of a rule of thumb, by job."""

    choices: tuple[LayoutChoice, ...]
    rule_of_thumb_regrets: tuple[float, ...]

    @property
    def mean_regret(self) -> float:
        return float(np.mean([choice.regret for choice in self.choices]))

    @property
    def largest_regret(self) -> float:
        """Regret of the worst choice."""
        return max(choice.regret for choice in self.choices)

    @property
    def mean_rank_correlation(self) -> float:
        """Mean Spearman correlation over jobs whose layouts differ."""
        return float(np.nanmean([choice.rank_correlation for choice in self.choices]))

    def to_json(self) -> dict[str, Any]:
        return {
            "jobs": len(self.choices),
            "mean_regret": self.mean_regret,
            "largest_regret": self.largest_regret,
            "mean_rank_correlation": self.mean_rank_correlation,
            "rule_of_thumb_mean_regret": float(np.mean(self.rule_of_thumb_regrets)),
            "rule_of_thumb_largest_regret": max(self.rule_of_thumb_regrets),
            "choices": [choice.to_json() for choice in self.choices],
        }


@dataclass(frozen=True)
class ModeSummary:
    """Results of one mode: run, score, null models, groups, and reasons for skipped rows.

    ``parts`` is keyed by columns, then by their values, then by model. ``assumed`` counts the
    assumptions about predicted rows.
    """

    run: Run
    scores: Mapping[str, Score]
    parts: Mapping[tuple[str, ...], Mapping[tuple[str, ...], Mapping[str, Score]]]
    skipped: Mapping[str, int]
    not_applicable: Mapping[str, int]
    assumed: Mapping[str, int]
    layout: LayoutSummary | None

    @property
    def mode(self) -> Mode:
        return self.run.mode

    @property
    def memory(self) -> MemoryVerdicts:
        """Errors of predicted memory and verdicts on jobs that ran and that failed."""
        return memory_verdicts(self.run.outcomes)

    def to_json(self) -> dict[str, Any]:
        return {
            "mode": str(self.mode),
            "scores": {name: each.to_json() for name, each in self.scores.items()},
            "by": [
                {
                    **dict(zip(columns, values, strict=True)),
                    "scores": {name: each.to_json() for name, each in by_model.items()},
                }
                for columns, parts in self.parts.items()
                for values, by_model in parts.items()
            ],
            "skipped_because": dict(self.skipped),
            "not_applicable_because": dict(self.not_applicable),
            "assumed": dict(self.assumed),
            "layout": None if self.layout is None else self.layout.to_json(),
            "memory": self.memory.to_json(),
        }


def summarise(
    measurements: Sequence[PublishedRow],
    mode: Mode,
    model: RowModel,
    by: Sequence[str] = (),
    progress: Progress | None = None,
    other_models: Sequence[RowModel] = (),
) -> ModeSummary:
    """Run ``model`` and the null models of ``mode``, and score them overall and by group.

    ``by`` are further columns (attributes of a measurement) to group by, together; ``other_models``
    are further models to compare with.
    """
    run = run_model(measurements, mode, model, progress)
    others = [*other_models, *null_models(mode, measurements)]
    runs = [run, *(run_model(measurements, mode, other) for other in others)]
    columns: list[tuple[str, ...]] = [(column,) for column in ALWAYS_BY]
    if by and tuple(by) not in columns:
        columns.append(tuple(by))
    return ModeSummary(
        run,
        {each.model: score(each.outcomes) for each in runs},
        {split: _split(runs, split) for split in columns},
        _reasons(outcome for outcome in run.outcomes if outcome.applicable),
        _reasons(outcome for outcome in run.outcomes if not outcome.applicable),
        _assumed(run),
        _layout(run) if mode is Mode.LAYOUT else None,
    )


def null_models(mode: Mode, measurements: Sequence[PublishedRow]) -> list[RowModel]:
    if mode is Mode.BASELINE:
        return [PerfectScaling(), RingWithoutOverlap()]
    return [FlopsOverPeak.fitted(measurements)]


def _split(
    runs: Sequence[Run], columns: tuple[str, ...]
) -> dict[tuple[str, ...], dict[str, Score]]:
    by_model = {run.model: scores_by(run.outcomes, columns) for run in runs}
    first = runs[0].model
    return {
        values: {name: parts[values] for name, parts in by_model.items()}
        for values in by_model[first]
    }


def _reasons(outcomes: Iterable[RowOutcome]) -> dict[str, int]:
    counts = Counter(o.skipped_because for o in outcomes if o.skipped_because)
    return dict(counts.most_common())


def _assumed(run: Run) -> dict[str, int]:
    forecasts = [outcome.forecast for outcome in run.outcomes if outcome.forecast is not None]
    counts = Counter(remark for forecast in forecasts for remark in forecast.remarks)
    return dict(counts.most_common())


def _layout(run: Run) -> LayoutSummary | None:
    choices = tuple(layout_choices(run.outcomes))
    if not choices:
        return None
    return LayoutSummary(choices, tuple(rule_of_thumb_regrets(run.outcomes)))
