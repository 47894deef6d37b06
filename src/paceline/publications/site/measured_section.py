"""Measurements of a study on this machine: one section for each part."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from paceline.analysis.accuracy import AccuracyLoss
from paceline.analysis.resource_tables import resource_tables
from paceline.explanation.explain_step import Explanation
from paceline.publications.reproduction_result import MeasuredResult
from paceline.publications.site.dp_vs_tp_section import describe_crossover, dp_vs_tp_section
from paceline.render.figures import figure
from paceline.render.figures.heatmap import heatmap_info
from paceline.render.html_page import Figure, Section
from paceline.render.table import Cell, Column, Table
from paceline.report.study_analysis import StudyAnalysis
from paceline.report.study_sections.accuracy_section import accuracy_section
from paceline.report.study_sections.explanation_section import explanations_section, timed_step
from paceline.report.study_sections.factors_section import factors_section
from paceline.report.study_sections.opening import design_section
from paceline.report.study_sections.prediction_section import measured_phases
from paceline.report.study_sections.results_section import (
    plain_groups,
    ranking_section,
    results_section,
    scaling_section,
)
from paceline.report.study_sections.verdict import verdict
from paceline.step import Phase
from paceline.units import plural

_PATH = re.compile(r"(?<![\w.:/])/(?:[^\s'\"/]+/)+(?=[^\s'\"/])")
NAMED_PHASES = 3
"""Phases that a sentence names."""
FIGURES_OF_A_MODEL = 2
"""For several networks, only the waterfall and phases of each are drawn."""


def measured_section(result: MeasuredResult) -> Section:
    """The results of one part, or the reason why it did not run."""
    title = f"Measured: {result.part.what}"
    if result.analysis is None:
        reason = without_paths(result.reason) or "it did not run; use `paceline reproduce --run`"
        return Section(
            title, text=f"Not measured on this machine: {reason}.", points=missing_points(result)
        )
    parts = list(_parts(result, result.analysis))
    return Section(
        title,
        text="\n\n".join(text for part in parts if (text := part.text)),
        tables=[table for part in parts for table in part.tables],
        figures=[drawn for part in parts for drawn in part.figures],
        notes=list(dict.fromkeys(without_paths(note) for part in parts for note in part.notes)),
        warnings=list(dict.fromkeys(line for part in parts for line in part.warnings)),
        points=missing_points(result),
    )


def without_paths(text: str) -> str:
    """An error message with file names but without the directories of this machine."""
    return _PATH.sub("", text)


def missing_points(result: MeasuredResult) -> list[str]:
    """Missing frameworks and the commands that install them."""
    return [
        f"{name} is not installed and was skipped: {command}"
        for name, command in result.missing.items()
    ]


def answer(result: MeasuredResult) -> str:
    if result.analysis is None:
        return (
            f"Not measured: {without_paths(result.reason)}." if result.reason else "Not measured."
        )
    if result.dp_vs_tp:
        return describe_crossover(result.dp_vs_tp)
    if result.part.dp_vs_tp:
        return "No batch ran under both plans."
    if result.part.by == "model":
        return " ".join(map(describe_phases, _timed(result))) or "No phases were timed."
    accuracy = result.analysis.accuracy
    if accuracy is not None and accuracy.losses:
        return _describe_accuracy(accuracy.losses[0])
    return verdict(result.analysis)[0]


def _describe_accuracy(found: AccuracyLoss) -> str:
    low, high = (100 * bound for bound in found.interval)
    return (
        f"{found.configuration} against {found.base}: {found.verdict}; accuracy differs by "
        f"[{low:+.1f}, {high:+.1f}] points, and the margin is {100 * found.margin:g}."
    )


def _parts(result: MeasuredResult, analysis: StudyAnalysis) -> Iterator[Section]:
    by_model = result.part.by == "model"
    yield design_section(analysis)
    yield results_section(analysis)
    if result.part.dp_vs_tp:
        if result.dp_vs_tp:
            yield dp_vs_tp_section(result.dp_vs_tp)
        return
    for section in (
        ranking_section(analysis),
        None if by_model else scaling_section(analysis),
        accuracy_section(analysis.accuracy) if analysis.accuracy else None,
        factors_section(analysis.effects) if analysis.effects and not by_model else None,
    ):
        if section is not None:
            yield section
    if timed := _timed(result):
        yield Section("Phases", tables=[phases_table(timed)])
    for one in result.explained:
        yield from _explained(one, by_model)
    resources = resource_tables(plain_groups(analysis), None)
    if resources:
        yield Section("Resources", tables=resources)


def _timed(result: MeasuredResult) -> list[Explanation]:
    """Explanations whose phases were timed."""
    return [
        explanation
        for one in result.explained
        for explanation in one.explanations
        if explanation.profile is not None
    ]


def _explained(analysis: StudyAnalysis, by_model: bool) -> Iterator[Section]:
    """The explanation; for several networks in small figures titled with their names."""
    section = explanations_section(analysis)
    if section is None:
        return
    if not by_model:
        yield replace(section, figures=[*section.figures, *_heat_maps(analysis)])
        return
    model = analysis.launches[0].model
    yield replace(
        section,
        text=f"{model}: {section.text}",
        tables=[replace(table, title=f"{model}: {table.title}") for table in section.tables],
        figures=[
            replace(drawn, title=f"{model}: {drawn.title}", half=True)
            for drawn in section.figures[:FIGURES_OF_A_MODEL]
        ],
    )


def _heat_maps(analysis: StudyAnalysis) -> Sequence[Figure]:
    """Phases over time and ranks, where a launch of several ranks kept a step."""
    for explanation in analysis.explanations:
        first = explanation.measured.first
        step = timed_step(analysis.launches, first) if first.world_size > 1 else None
        if step is not None and step.seconds > 0:
            caption = "Dominant phase of each time slice and rank in one instrumented step."
            return [figure("Phases by time and rank", heatmap_info(step), caption)]
    return []


def phases_table(timed: Sequence[Explanation]) -> Table:
    """Seconds of the timed step, and the share of each phase of the slowest rank."""
    present = [phase for phase in Phase if any(str(phase) in measured_phases(one) for one in timed)]
    return Table.of(
        timed,
        (Column("configuration"), lambda one: one.measured.description),
        (Column("step", "ms", scale=1e3), lambda one: one.observed.step.mean),
        *((Column(str(phase), "%", scale=100.0, decimals=1), _share(phase)) for phase in present),
        title="Phases of a step",
        note="Slowest rank of instrumented launches; each instant belongs to one phase, so "
        "overlapped communication is not included.",
    )


def describe_phases(explanation: Explanation) -> str:
    shares = _shares(explanation)
    largest = sorted(shares, key=lambda phase: -shares[phase])[:NAMED_PHASES]
    parts = ", ".join(f"{phase} {shares[phase]:.0%}" for phase in largest)
    first = explanation.measured.first
    return f"{first.model} on {plural(first.world_size, 'process')}: {parts}."


def _share(phase: Phase) -> Callable[[Explanation], Cell]:
    return lambda one: _shares(one).get(str(phase), 0.0)


def _shares(explanation: Explanation) -> dict[str, float]:
    phases = measured_phases(explanation)
    total = sum(phases.values())
    return {phase: seconds / total for phase, seconds in phases.items()} if total > 0 else {}
