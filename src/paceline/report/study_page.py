"""The page of a study: verdict and its figure, results, explanation, prediction, then methods."""

from paceline.analysis.configurations import LaunchGroup
from paceline.render.html_page import Fact, Page
from paceline.render.number_format import (
    Ranged,
    format_number,
    interval_decimals,
    interval_text,
    short_number,
)
from paceline.report.study_analysis import StudyAnalysis
from paceline.report.study_sections.accuracy_section import accuracy_section
from paceline.report.study_sections.closing import appendix_section, threats_section
from paceline.report.study_sections.evidence_section import layers_section, machine_section
from paceline.report.study_sections.explanation_section import explanations_section
from paceline.report.study_sections.factors_section import factors_section
from paceline.report.study_sections.methods import methods_section
from paceline.report.study_sections.opening import (
    describe_header,
    describe_load,
    design_section,
    environment_section,
    versions,
)
from paceline.report.study_sections.prediction_section import model_section
from paceline.report.study_sections.results_section import (
    ranking_section,
    results_section,
    scaling_section,
)
from paceline.report.study_sections.verdict import NAMED, listed, verdict
from paceline.units import plural

MOST_FACTS = 3
"""Limit of numbers on the first screen."""


def study_page(results: StudyAnalysis) -> Page:
    models = sorted({launch.model for launch in results.finished})
    leading = [
        ranking_section(results),
        factors_section(results.effects) if results.effects else None,
        explanations_section(results),
        scaling_section(results),
        results_section(results),
    ]
    ranking, factors, explanations, scaling, measured = leading
    sections = [
        ranking,
        measured,
        scaling,
        factors,
        explanations,
        accuracy_section(results.accuracy) if results.accuracy else None,
        model_section(results),
        layers_section(results),
        machine_section(results),
        design_section(results),
        environment_section(results),
        threats_section(results),
        methods_section(results),
        appendix_section(results),
    ]
    lead = next((one.figures[0] for one in leading if one is not None and one.figures), None)
    what = "frameworks compared" if results.rankings else _what_was_done(results)
    return Page(
        title=f"{', '.join(models)}: {what}",
        subtitle=describe_header(results),
        verdict=verdict(results),
        facts=_facts(results),
        lead=lead,
        sections=[one for one in sections if one is not None],
        provenance=_provenance(results),
    )


def _what_was_done(results: StudyAnalysis) -> str:
    """``measured, predicted, explained``, as far as the launches allow."""
    done = ["measured"]
    done += ["predicted"] if results.here or results.elsewhere else []
    return ", ".join(done + (["explained"] if results.explanations else []))


def _facts(results: StudyAnalysis) -> list[Fact]:
    facts = []
    for count, ranking in results.rankings.items():
        best = listed([ranking.names[0], *ranking.tied_with(ranking.names[0])][:NAMED])
        tied = " (tied)" if ranking.tied_with(ranking.names[0]) else ""
        facts.append(
            _throughput_fact(f"{best}{tied}, {plural(count, 'process')}", ranking.groups[0])
        )
    if facts:
        return facts[:MOST_FACTS]
    if results.alone is not None:
        facts.append(_throughput_fact("1 process", results.alone))
    for one in results.here[-1:]:
        if one.measured is not None:
            facts.append(_throughput_fact(one.label, one.measured))
        low, high = one.prediction.samples_per_second_interval
        error = "" if one.error is None else f", error {one.error:+.1%}"
        facts.append(
            Fact(
                f"{one.label}, predicted",
                f"{short_number(one.prediction.samples_per_second)} samples/s",
                f"[{short_number(low)}, {short_number(high)}] (90 %){error}",
            )
        )
    return facts[:MOST_FACTS]


def _throughput_fact(label: str, group: LaunchGroup) -> Fact:
    rate, number = group.throughput, Ranged.of(group.throughput)
    decimals = interval_decimals([number])
    interval = interval_text(number, decimals, symmetric=number.half_width is not None)
    note = f"{interval} (95 %, {plural(rate.launches, 'launch')})" if interval else ""
    return Fact(label, f"{format_number(rate.mean, decimals)} samples/s", note)


def _provenance(results: StudyAnalysis) -> list[Fact]:
    if not results.launches:
        return []
    first = results.launches[0]
    environment = first.environment
    return [
        Fact("machine", f"{environment.get('cpu_model')}, {environment.get('cores')} cores"),
        Fact("framework", ", ".join(versions(results.finished))),
        Fact("Paceline", f"{environment.get('paceline')} on Python {environment.get('python')}"),
        Fact("commit of the working directory", str(environment.get("git_commit") or "none")),
        Fact("started", first.created_at),
        Fact("launches", str(len(results.launches))),
        Fact("load average before launches", describe_load(results.launches) or "unknown"),
    ]
