"""Where the time of a measured step goes: waterfall, what to do, phases, one step unfolded."""

from collections.abc import Sequence

from paceline.analyse.explain import Explanation
from paceline.analyse.study_analysis import StudyAnalysis
from paceline.report.figures import WaterfallInfo, figure, gantt_info, utilisation_info
from paceline.report.page import Figure, Section
from paceline.report.study_sections.model import phases_figure
from paceline.report.tables.explanation import explanation_title, findings_table
from paceline.step import Step
from paceline.store import Launch
from paceline.units import format_seconds


def explanations_section(results: StudyAnalysis) -> Section | None:
    """Why a step is as long as it is; of several frameworks the waterfalls side by side."""
    told = [one for one in results.explanations if one.alone or one.profile]
    if not told:
        return None
    if len(told) == 1:
        return _of_one(results, told[0])
    return Section(
        "Where the time goes",
        text="From the ideal step of each framework, its own on one process, to the measured one.",
        figures=[
            figure(
                f"{one.measured.first.framework}: {one.efficiency:.0%} of its ideal",
                WaterfallInfo(one.waterfall),
                _first_finding(one),
                half=True,
            )
            for one in told
        ],
        notes=list(dict.fromkeys(f"Not known: {words}" for one in told for words in one.missing)),
    )


def _first_finding(explanation: Explanation) -> str:
    if not explanation.findings:
        return ""
    first = explanation.findings[0]
    return f"{first.verdict}: {first.remedy}."


def _of_one(results: StudyAnalysis, explanation: Explanation) -> Section:
    measured = explanation.measured
    figures = [
        figure(
            "From the ideal step to the measured one",
            WaterfallInfo(explanation.waterfall),
            "Each bar is what one cause adds; what no cause accounts for comes last.",
        )
    ]
    phases = phases_figure(results, explanation)
    figures += [phases] if phases is not None else []
    figures += _unfolded(results, explanation)
    findings = findings_table(explanation)
    return Section(
        "Where the time goes",
        text=f"{explanation_title(explanation)}. The measured step is "
        f"{format_seconds(measured.step.mean)}, the mean over {len(measured.launches)} launches "
        "without timers; everything below adds up to it.",
        tables=[findings] if findings is not None and findings.rows else [],
        figures=figures,
        notes=[f"Not known: {words}" for words in explanation.missing],
    )


def _unfolded(results: StudyAnalysis, explanation: Explanation) -> list[Figure]:
    """One step as it unfolds, measured and predicted, and how busy its resources are."""
    measured = explanation.measured
    figures = []
    timed = timed_step(results.launches, measured.first)
    if timed is not None and timed.seconds > 0:
        length = measured.step.mean
        change = timed.seconds / length - 1
        caption = (
            f"One step of a launch with timers, which took {format_seconds(timed.seconds)} "
            f"({change:+.0%}), drawn as long as the measured step."
        )
        drawn = timed.stretched(length / timed.seconds)
        figures.append(figure("A measured step", gantt_info(drawn), caption))
        figures.append(
            figure(
                "Use of resources in that step",
                utilisation_info(drawn),
                "The share of ranks that use a resource, by what they do; at the right its mean.",
            )
        )
    figures += [
        figure("The predicted step of one rank", gantt_info(one.prediction.step))
        for one in results.here
        if one.prediction.devices == measured.first.world_size
    ]
    return figures


def timed_step(launches: Sequence[Launch], like: Launch) -> Step | None:
    """The step that a launch with timers kept of this configuration."""
    for launch in launches:
        if (
            launch.instrument in ("phases", like.instrument)
            and launch.world_size == like.world_size
            and launch.framework == like.framework
            and launch.outcome.timeline is not None
        ):
            return launch.outcome.timeline
    return None
