"""Where the time of a measured step goes: waterfall, findings, phases, timeline of one step."""

from collections.abc import Sequence

from paceline.explanation.explain_step import Explanation
from paceline.explanation.explanation_tables import (
    explanation_title,
    findings_table,
    instrumented_lines,
    step_kind,
)
from paceline.render.figures import WaterfallInfo, figure, gantt_info, utilisation_info
from paceline.render.html_page import Figure, Section
from paceline.report.study_analysis import StudyAnalysis
from paceline.report.study_sections.prediction_section import phases_figure
from paceline.step import Step
from paceline.store import Launch
from paceline.units import format_seconds, plural


def explanations_section(results: StudyAnalysis) -> Section | None:
    """The explanation of one framework, or the waterfalls of several."""
    explained = [one for one in results.explanations if one.alone or one.profile]
    if not explained:
        return None
    if len(explained) == 1:
        return _of_one(results, explained[0])
    return Section(
        "Where the time goes",
        text="From the ideal step of each framework to the observed one. The ideal step is that of "
        "one process, less the time that other programs took where it was observed.",
        figures=[
            figure(
                f"{one.measured.first.framework}: {one.efficiency:.0%} ideal",
                _waterfall(one),
                _first_finding(one),
                half=True,
            )
            for one in explained
        ],
        notes=[
            *(
                f"{one.measured.first.framework}: {line}"
                for one in explained
                for line in instrumented_lines(one)
            ),
            *dict.fromkeys(f"Not measured: {gap}" for one in explained for gap in one.missing),
        ],
    )


def _waterfall(explanation: Explanation) -> WaterfallInfo:
    return WaterfallInfo(explanation.waterfall, f"{step_kind(explanation)} step")


def _first_finding(explanation: Explanation) -> str:
    if not explanation.findings:
        return ""
    first = explanation.findings[0]
    return f"{first.verdict}: {first.remedy}."


def _of_one(results: StudyAnalysis, explanation: Explanation) -> Section:
    observed, kind = explanation.observed, step_kind(explanation)
    figures = [
        figure(
            f"From the ideal step to the {kind} one",
            _waterfall(explanation),
            "Each bar is the time that one cause adds. The last is unattributed: the residual, "
            "including causes whose interval over launches includes zero.",
        )
    ]
    phases = phases_figure(results, explanation)
    figures += [phases] if phases is not None else []
    figures += _unfolded(results, explanation)
    findings = findings_table(explanation)
    return Section(
        "Where the time goes",
        text=f"{explanation_title(explanation)}. The {kind} step is "
        f"{format_seconds(observed.step.mean)}, the mean over "
        f"{plural(len(observed.launches), 'launch')}; the parts below add up to it.",
        tables=[findings] if findings is not None and findings.rows else [],
        figures=figures,
        notes=[
            *instrumented_lines(explanation),
            *(f"Not measured: {gap}" for gap in explanation.missing),
        ],
    )


def _unfolded(results: StudyAnalysis, explanation: Explanation) -> list[Figure]:
    """Timelines of a measured and a predicted step, and the utilisation of resources."""
    measured = explanation.measured
    figures = []
    timed = timed_step(results.launches, measured.first)
    if timed is not None and timed.seconds > 0:
        caption = f"One step of an instrumented launch ({format_seconds(timed.seconds)})."
        figures.append(figure("A measured step", gantt_info(timed), caption))
        figures.append(
            figure(
                "Resource utilisation in this step",
                utilisation_info(timed),
                "Share of ranks that use a resource, by phase; the mean is at the right.",
            )
        )
    figures += [
        figure("The predicted step of one rank", gantt_info(one.prediction.step))
        for one in results.here
        if one.prediction.devices == measured.first.world_size
    ]
    return figures


def timed_step(launches: Sequence[Launch], like: Launch) -> Step | None:
    """The recorded step of an instrumented launch of this configuration."""
    for launch in launches:
        if (
            launch.instrument in ("phases", like.instrument)
            and launch.world_size == like.world_size
            and launch.framework == like.framework
            and launch.outcome.timeline is not None
        ):
            return launch.outcome.timeline
    return None
