"""Effects of the factors of a study on seconds per sample, on logarithms."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paceline.analysis.completeness import completeness
from paceline.analysis.launch_statistics import mean_step_seconds
from paceline.errors import InputError
from paceline.stats.anova import AnalysisOfVariance, SplitPlot, analyse_variance
from paceline.stats.factorial import TwoLevelAnalysis, two_level_analysis
from paceline.store import Launch, Status


@dataclass(frozen=True)
class StudyEffects:
    """Factors with their levels, analysis of variance, and effects of a two-level design.

    The response is the logarithm of seconds per sample, so an effect is a ratio: the second level
    of a factor with the effect q takes exp(2 q) times as long as the first. ``two_level`` is None
    unless every combination of two levels ran equally often. ``cells`` are mean seconds per sample
    by levels, for interaction plots.
    """

    levels: dict[str, tuple[Any, ...]]
    variance: AnalysisOfVariance
    two_level: TwoLevelAnalysis | None
    cells: dict[tuple[Any, ...], float]


def study_effects(
    launches: Sequence[Launch], design: Mapping[str, Any] | None = None
) -> StudyEffects | None:
    """Effects of the factors of a study; None without factors or with too few launches.

    ``design`` is the recorded one: a blocked order is a split plot, and configurations without
    results leave main effects only.
    """
    planned = design or {}
    included = [
        one
        for one in launches
        if one.status is Status.FINISHED
        and one.is_steady
        and one.job.get("factors")
        and one.instrument == "none"
    ]
    factors = {one.id: _factors(one) for one in included}
    names = list(dict.fromkeys(name for own in factors.values() for name in own))
    included = [one for one in included if all(name in factors[one.id] for name in names)]
    levels = {
        name: tuple(dict.fromkeys(factors[one.id][name] for one in included)) for name in names
    }
    varied = {name: own for name, own in levels.items() if len(own) > 1}
    if not varied or len(included) < 3:
        return None
    seconds = [mean_step_seconds(one) / one.samples_per_step for one in included]
    responses = [math.log(value) for value in seconds]
    columns = {name: [factors[one.id][name] for one in included] for name in varied}
    cells: dict[tuple[Any, ...], list[float]] = {}
    for number, key in enumerate(zip(*columns.values(), strict=True)):
        cells.setdefault(key, []).append(responses[number])
    found = completeness(planned, launches)
    whole = found is None or found.measured == found.planned
    return StudyEffects(
        {name: tuple(sorted(own, key=_sortable)) for name, own in varied.items()},
        analyse_variance(
            columns,
            responses,
            range(len(included)),
            interactions=min(3, len(varied)) if whole else 1,
            plots=_plots(planned, included, varied),
        ),
        _two_level(varied, cells) if whole else None,
        {key: math.exp(math.fsum(own) / len(own)) for key, own in cells.items()},
    )


def _factors(launch: Launch) -> dict[str, Any]:
    """Levels of a launch, with processes and threads, which studies also vary outside factors."""
    settings = {"processes": launch.world_size, "threads": launch.job.get("threads", 1)}
    own = launch.job["factors"]
    return {**own, **{name: value for name, value in settings.items() if name not in own}}


def _plots(
    design: Mapping[str, Any], launches: Sequence[Launch], varied: Mapping[str, object]
) -> SplitPlot | None:
    """Whole plots of a blocked order; the replicate of a launch is its block."""
    if design.get("order_kind") != "blocked" or design["block_by"] not in varied:
        return None
    blocks = [int(one.job.get("replicate", 0)) for one in launches]
    return SplitPlot(design["block_by"], blocks) if len(set(blocks)) > 1 else None


def _two_level(
    varied: dict[str, tuple[Any, ...]], cells: dict[tuple[Any, ...], list[float]]
) -> TwoLevelAnalysis | None:
    if any(len(own) != 2 for own in varied.values()):
        return None
    ordered = [sorted(own, key=_sortable) for own in varied.values()]
    # The 2^k r analysis (Jain) needs the same number of replications in every cell.
    least = min(map(len, cells.values()))
    responses = {
        tuple(2 * own.index(level) - 1 for own, level in zip(ordered, key, strict=True)): values[
            :least
        ]
        for key, values in cells.items()
    }
    try:
        return two_level_analysis(list(varied), responses)
    except InputError:
        return None


def _sortable(level: Any) -> tuple[bool, Any]:
    return isinstance(level, str), level
