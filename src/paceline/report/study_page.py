"""The page of a study in the order of a paper: verdict, question, design, results, explanation."""

from paceline.analysis.configurations import LaunchGroup
from paceline.render.html_page import Fact, Page
from paceline.report.study_analysis import StudyAnalysis
from paceline.report.study_sections.accuracy_section import accuracy_section
from paceline.report.study_sections.closing import appendix_section, threats_section
from paceline.report.study_sections.evidence_section import layers_section, machine_section
from paceline.report.study_sections.explanation_section import explanations_section
from paceline.report.study_sections.factors_section import factors_section
from paceline.report.study_sections.opening import (
    describe_header,
    describe_load,
    design_section,
    environment_section,
    question_section,
    versions,
)
from paceline.report.study_sections.prediction_section import model_section
from paceline.report.study_sections.results_section import (
    ranking_section,
    results_section,
    scaling_section,
)
from paceline.report.study_sections.verdict import verdict
from paceline.units import plural


def study_page(results: StudyAnalysis) -> Page:
    models = sorted({launch.model for launch in results.finished})
    sections = [
        question_section(results),
        design_section(results),
        environment_section(results),
        ranking_section(results),
        results_section(results),
        scaling_section(results),
        accuracy_section(results.accuracy) if results.accuracy else None,
        model_section(results),
        explanations_section(results),
        factors_section(results.effects) if results.effects else None,
        layers_section(results),
        machine_section(results),
        threats_section(results),
        appendix_section(results),
    ]
    what = "frameworks compared" if results.rankings else _what_was_done(results)
    return Page(
        title=f"{', '.join(models)}: {what}",
        subtitle=describe_header(results),
        verdict=verdict(results),
        facts=_facts(results),
        sections=[section for section in sections if section is not None],
        provenance=_provenance(results),
    )


def _what_was_done(results: StudyAnalysis) -> str:
    """``measured, predicted, explained``, as far as the launches allow."""
    done = ["measured"]
    done += ["predicted"] if results.here or results.elsewhere else []
    return ", ".join(done + (["explained"] if results.explanations else []))


def _facts(results: StudyAnalysis) -> list[Fact]:
    facts = [
        _throughput_fact(f"{ranking.names[0]}, {plural(count, 'process')}", ranking.groups[0])
        for count, ranking in results.rankings.items()
    ]
    if facts:
        return facts
    if results.alone is not None:
        facts.append(_throughput_fact("1 process", results.alone))
    for one in results.here:
        if one.measured is not None:
            facts.append(_throughput_fact(one.label, one.measured))
        low, high = one.prediction.samples_per_second_interval
        error = "" if one.error is None else f", error {one.error:+.1%}"
        facts.append(
            Fact(
                f"{one.label}, predicted",
                f"{one.prediction.samples_per_second:,.1f} samples/s",
                f"[{low:,.1f}, {high:,.1f}]{error}",
            )
        )
    return facts


def _throughput_fact(label: str, group: LaunchGroup) -> Fact:
    rate = group.throughput
    note = f"± {rate.half_width:,.1f} over {rate.launches} launches" if rate.launches > 1 else ""
    return Fact(label, f"{rate.mean:,.1f} samples/s", note)


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
