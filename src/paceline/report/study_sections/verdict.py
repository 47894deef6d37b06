"""The answer of a study in a few sentences, and the question that it answers."""

import math
from collections.abc import Iterator, Sequence

from paceline.analyse.comparison import Comparison
from paceline.analyse.explain import Explanation
from paceline.analyse.ranking import Ranking
from paceline.analyse.study_analysis import StudyAnalysis
from paceline.analyse.waterfall import ItemKind
from paceline.report.numbers import Ranged, ranged_text, short_number
from paceline.units import format_seconds

NAMED = 3
"""Frameworks or factors that a sentence names one by one."""


def question(results: StudyAnalysis) -> str:
    """What the study can answer, from what it varied."""
    models = ", ".join(sorted({launch.model for launch in results.launches}))
    counts = sorted({launch.world_size for launch in results.launches})
    where = f"on {listed(counts)} {'process' if counts == [1] else 'processes'}"
    if results.rankings:
        frameworks = len(results.frameworks)
        return f"Which of {frameworks} frameworks trains {models} fastest {where}, and how surely?"
    if results.effects is not None:
        factors = listed([name.replace("_", " ") for name in results.effects.levels])
        verb = "do" if len(results.effects.levels) > 1 else "does"
        return f"What {verb} {factors} change in the seconds per sample of {models}?"
    if len(counts) > 1:
        most = f"1 to {counts[-1]}" if counts[0] == 1 else listed(counts)
        return f"How does training of {models} scale on {most} processes, and what takes the rest?"
    return f"How fast is {models} trained {where}?"


def verdict(results: StudyAnalysis) -> list[str]:
    """The answer: the first sentence says most."""
    sentences = [
        _ranked(count, results.rankings[count]) for count in sorted(results.rankings, reverse=True)
    ]
    if results.effects is not None:
        sentences.append(_largest_effects(results))
    if not results.rankings:
        for explanation in results.explanations[:1]:
            sentences += _explained(explanation)
        sentences += [_predicted(one) for one in results.here if one.measured is not None]
    return sentences or list(_plain(results))


def listed(items: Sequence[object]) -> str:
    """``1, 2 and 4``."""
    words = [str(item) for item in items]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def counted(processes: int) -> str:
    """``1 process``, ``2 processes``."""
    return f"{processes} process{'es' if processes > 1 else ''}"


def _ranked(processes: int, ranking: Ranking) -> str:
    best = ranking.names[0]
    rate = ranged_text(Ranged.of(ranking.groups[0].throughput), "samples/s")
    tied = ranking.tied_with(best)
    words = f"On {counted(processes)} {best} has the highest throughput: {rate}"
    if tied:
        named = listed(tied) if len(tied) <= NAMED else f"{len(tied)} others"
        return f"{words}; it is not distinguishable from {named}."
    if len(ranking.names) == 1:
        return f"{words}."
    ratio = ranking.groups[0].throughput.mean / ranking.groups[1].throughput.mean
    return f"{words}, {short_number(ratio)} times that of {ranking.names[1]}; the gap is clear."


def _largest_effects(results: StudyAnalysis) -> str:
    assert results.effects is not None
    rows = sorted(results.effects.variance.rows, key=lambda row: -row.share)[:NAMED]
    told = [f"{row.name} {row.share:.0%}" for row in rows if row.share >= 0.005]
    error = results.effects.variance.error_share
    if not told:
        return f"No factor explains the variation; {error:.1%} of it is between launches."
    return (
        f"The variation of seconds per sample is due to {listed(told)}; "
        f"{error:.1%} of it is between launches."
    )


def _explained(explanation: Explanation) -> Iterator[str]:
    measured = explanation.measured
    rate = ranged_text(Ranged.of(measured.throughput), "samples/s")
    words = f"{counted(measured.first.world_size).capitalize()} reach {rate}"
    if measured.first.world_size == 1:
        words = words.replace("reach", "reaches")
    if explanation.alone is not None:
        scaling = explanation.alone.step.mean / measured.step.mean
        words += f", {scaling:.0%} of perfect scaling"
    yield f"{words}."
    causes = [i for i in explanation.waterfall.items if i.kind is not ItemKind.IDEAL]
    largest = max(causes, key=lambda item: item.seconds, default=None)
    step = measured.step.mean
    if largest is not None and largest.seconds > 0.01 * step:
        told = f"{format_seconds(largest.seconds)} of a step of {format_seconds(step)}"
        yield f"The largest loss is {largest.label}: {told}."
    if explanation.findings:
        first = explanation.findings[0]
        yield f"What to do first: {first.remedy} (saves {format_seconds(first.saved_seconds)})."


def _predicted(one: Comparison) -> str:
    assert one.error is not None and one.perfect_error is not None
    inside = "inside" if one.covered else "outside"
    return (
        f"{one.label.capitalize()} were predicted to {one.error:+.1%}, {inside} the 90 % interval; "
        f"perfect scaling would have been {one.perfect_error:+.1%}."
    )


def _plain(results: StudyAnalysis) -> Iterator[str]:
    plain = [group for group in results.groups if group.first.instrument == "none"]
    best = max(plain, key=lambda group: group.throughput.mean, default=None)
    if best is None or not math.isfinite(best.throughput.mean):
        yield "No launch finished: nothing can be said."
        return
    yield f"{best.words}: {ranged_text(Ranged.of(best.throughput), 'samples/s')}."
