"""What speaks against the results, every launch, and how to do it again."""

from collections.abc import Iterator

from paceline.analyse.groups import emulated_words, lab_words
from paceline.analyse.study_analysis import StudyAnalysis
from paceline.naming import file_name
from paceline.report.factors import UNCONTROLLED, statistics_tables
from paceline.report.page import Section
from paceline.report.study_sections.explained import timed_step
from paceline.report.study_sections.opening import load_words
from paceline.report.study_sections.results import plain_groups
from paceline.report.tables.launches import launch_table
from paceline.report.tables.resources import resource_tables
from paceline.statistics.normality import ENOUGH
from paceline.store import Status
from paceline.units import format_seconds

BUSY = 0.5
"""Load a core before a launch from which on other programs may have been in the way."""
SLOWED = 0.05
"""By how much timers may lengthen a step before their phases are doubted."""
MOST_ROWS = 400
"""Launches of the page's table; files have all of them."""


def threats_section(results: StudyAnalysis) -> Section:
    """Every reason known why the numbers may not hold, here or elsewhere."""
    return Section("Threats to validity", points=list(_threats(results)))


def _threats(results: StudyAnalysis) -> Iterator[str]:
    plain = plain_groups(results)
    few = [group for group in plain if len(group.launches) < ENOUGH]
    if few:
        yield (
            f"{len(few)} of {len(plain)} configurations have fewer than {ENOUGH} launches: their "
            "intervals assume what so few launches cannot show."
        )
    yield from (f"{line[:1].upper()}{line[1:]}." for line in results.doubts)
    yield from _lost(results)
    yield from _machine(results)
    for explanation in results.explanations:
        timed = timed_step(results.launches, explanation.measured.first)
        step = explanation.measured.step.mean
        if timed is not None and abs(timed.seconds / step - 1) > SLOWED:
            yield (
                f"Timers changed the step from {format_seconds(step)} to "
                f"{format_seconds(timed.seconds)}: shares of phases are those of a longer step."
                if timed.seconds > step
                else f"The step that was kept with its tasks took {format_seconds(timed.seconds)}, "
                f"the mean one {format_seconds(step)}."
            )
    if any((one.job.get("data") or {}).get("kind") == "synthetic" for one in results.launches):
        yield "Data are synthetic and in memory: reading and decoding files is not in these times."
    yield f"Left to chance: {', '.join(UNCONTROLLED)}."


def _lost(results: StudyAnalysis) -> Iterator[str]:
    lost = [one for one in results.launches if one.status is not Status.FINISHED]
    if lost:
        yield f"{len(lost)} launches did not finish and are left out; the appendix says why."
    unsteady = sum(one.status is Status.FINISHED and not one.is_steady for one in results.launches)
    if unsteady:
        yield f"{unsteady} launches never became steady and are left out."


def _machine(results: StudyAnalysis) -> Iterator[str]:
    launches = results.launches
    loads = [
        (load, one.environment.get("cores") or 1)
        for one in launches
        if (load := one.outcome.facts.get("load_before")) is not None
    ]
    if any(load > BUSY * cores for load, cores in loads):
        yield (
            f"The machine was not idle: its load was {load_words(launches)} before launches. Other "
            "programs took part of the time that is reported."
        )
    emulated = {words for one in launches if (words := emulated_words(one) or lab_words(one))}
    if emulated:
        yield f"Not all of it was real: {', '.join(sorted(emulated))}."
    if len({one.environment.get("cpu_model") for one in launches}) == 1:
        yield "All launches ran on one machine; of others only predictions are made."


def appendix_section(results: StudyAnalysis) -> Section:
    """The spread of steps, every launch, and the commands that do it again."""
    shown = results.launches[:MOST_ROWS]
    note = "In the order in which they ran."
    if len(results.launches) > len(shown):
        note += f" The first {len(shown)} of {len(results.launches)}; paceline export has all."
    table = launch_table(shown, note, of_one_study=True)
    name, plain = results.study, plain_groups(results)
    resources = resource_tables(plain, results.design.get("node_price"))
    again = f"paceline rerun {name}" if results.design else f"paceline list --study {name}"
    return Section(
        "Appendix: launches",
        tables=[*statistics_tables(plain), *resources, table],
        text="The launches as tables for R or pandas, the figures for a paper, and the study once "
        "more:",
        commands=[
            f"paceline export {file_name(name)}.csv --study {name}",
            f"paceline report {name} --figures figures",
            again,
        ],
    )
