"""The question of a study, and its answer in a few sentences."""

import math
from collections.abc import Iterator, Sequence

from paceline.analysis.ranking import Ranking
from paceline.calibration.prediction_error import Comparison
from paceline.explanation.explain_step import Explanation
from paceline.render.number_format import Ranged, ranged_text, short_number
from paceline.report.study_analysis import StudyAnalysis
from paceline.step.waterfall import ItemKind
from paceline.units import format_seconds, plural

NAMED = 3
"""Limit of frameworks or factors that a sentence names."""


def question(results: StudyAnalysis) -> str:
    """The question that the study can answer, from the factors that it varied."""
    models = ", ".join(sorted({launch.model for launch in results.finished}))
    counts = sorted({launch.world_size for launch in results.finished})
    where = f"with {listed(counts)} {'process' if counts == [1] else 'processes'}"
    if results.rankings:
        frameworks = len(results.frameworks)
        return f"Which of {frameworks} frameworks trains {models} fastest {where}?"
    if results.effects is not None:
        factors = listed([name.replace("_", " ") for name in results.effects.levels])
        verb = "do" if len(results.effects.levels) > 1 else "does"
        return f"How {verb} {factors} affect the seconds per sample of {models}?"
    if len(counts) > 1:
        most = f"1 to {counts[-1]}" if counts[0] == 1 else listed(counts)
        return f"How does training of {models} scale with {most} processes, and what limits it?"
    return f"How fast does {models} train {where}?"


def verdict(results: StudyAnalysis) -> list[str]:
    """The answer, the most important sentence first."""
    sentences = [
        _ranked(count, results.rankings[count]) for count in sorted(results.rankings, reverse=True)
    ]
    if results.effects is not None:
        sentences.append(_largest_effects(results))
    if not results.rankings:
        for explanation in results.explanations[:1]:
            sentences += _explained(explanation)
        sentences += [_predicted(one) for one in results.here if one.measured is not None]
    if results.completeness is not None and (results.rankings or results.effects is not None):
        sentences += results.completeness.notes
    return sentences or list(_plain(results))


def listed(items: Sequence[object]) -> str:
    """``1, 2 and 4``."""
    names = [str(item) for item in items]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _ranked(processes: int, ranking: Ranking) -> str:
    best = ranking.names[0]
    if len(ranking.names) == 1:
        return f"With {plural(processes, 'process')}, only {best} has results: no ranking."
    if min(len(group.launches) for group in ranking.groups) < 2:
        return f"With {plural(processes, 'process')}, single launches cannot be ranked."
    rate = ranged_text(Ranged.of(ranking.groups[0].throughput), "samples/s")
    tied = ranking.tied_with(best)
    if tied:
        named = listed([best, *tied]) if len(tied) <= NAMED else f"{best} and {len(tied)} others"
        return (
            f"With {plural(processes, 'process')}, {named} are tied: the difference in throughput "
            f"is not significant ({best} reaches {rate})."
        )
    answer = f"With {plural(processes, 'process')}, {best} has the highest throughput: {rate}"
    ratio = short_number(ranking.groups[0].throughput.mean / ranking.groups[1].throughput.mean)
    return f"{answer}, {ratio} times that of {ranking.names[1]}; the difference is significant."


def _largest_effects(results: StudyAnalysis) -> str:
    assert results.effects is not None
    rows = sorted(results.effects.variance.rows, key=lambda row: -row.share)[:NAMED]
    shares = [f"{row.name} {100 * row.share:.0f} %" for row in rows if row.share >= 0.005]
    error = f"{100 * results.effects.variance.error_share:.0f} %"
    if not shares:
        return f"No factor explains the variation; {error} of it is between launches."
    return (
        f"Sources of variation in seconds per sample: {listed(shares)}; differences between "
        f"launches of a configuration {error}."
    )


def _explained(explanation: Explanation) -> Iterator[str]:
    measured = explanation.measured
    rate = ranged_text(Ranged.of(measured.throughput), "samples/s")
    verb = "reaches" if measured.first.world_size == 1 else "reach"
    answer = f"{plural(measured.first.world_size, 'process')} {verb} {rate}"
    if explanation.alone is not None:
        scaling = explanation.alone.step.mean / measured.step.mean
        answer += f", {scaling:.0%} of perfect scaling"
    yield f"{answer}."
    causes = [i for i in explanation.waterfall.items if i.kind is not ItemKind.IDEAL]
    largest = max(causes, key=lambda item: item.seconds, default=None)
    step = explanation.observed.step.mean
    if largest is not None and largest.seconds > 0.01 * step:
        share = f"{format_seconds(largest.seconds)} of a step of {format_seconds(step)}"
        if largest.kind is ItemKind.UNEXPLAINED:
            yield f"{share} has no attributed cause."
        else:
            yield f"The largest overhead is {largest.label}: {share}."
    if explanation.findings:
        first = explanation.findings[0]
        yield f"First remedy: {first.remedy} (saves {format_seconds(first.saved_seconds)})."


def _predicted(one: Comparison) -> str:
    assert one.measured is not None and one.error is not None and one.perfect_error is not None
    rates = [one.prediction.samples_per_second, one.measured.throughput.mean]
    predicted, measured = map(short_number, rates)
    return (
        f"Predicted within {100 * abs(one.error):.1f} % on {one.label} ({predicted} against "
        f"{measured} samples/s), {'inside' if one.covered else 'outside'} the 90 % interval; "
        f"perfect scaling is off by {100 * one.perfect_error:+.1f} %."
    )


def _plain(results: StudyAnalysis) -> Iterator[str]:
    plain = [group for group in results.groups if group.first.instrument == "none"]
    best = max(plain, key=lambda group: group.throughput.mean, default=None)
    if best is None or not math.isfinite(best.throughput.mean):
        yield "No launch finished."
        return
    yield f"{best.description}: {ranged_text(Ranged.of(best.throughput), 'samples/s')}."
