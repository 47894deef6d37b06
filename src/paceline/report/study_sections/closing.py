"""Threats to validity, and the appendix with every launch."""

from collections.abc import Iterator

from paceline.analysis.configurations import describe_emulation, describe_lab
from paceline.analysis.launch_tables import launch_table
from paceline.analysis.resource_tables import resource_tables
from paceline.naming import file_name
from paceline.render.html_page import Section
from paceline.report.study_analysis import StudyAnalysis
from paceline.report.study_sections.factors_section import UNCONTROLLED, statistics_tables
from paceline.report.study_sections.opening import describe_load
from paceline.report.study_sections.results_section import plain_groups
from paceline.stats.normality import ENOUGH
from paceline.store import Status
from paceline.units import format_seconds, plural

BUSY = 0.5
"""Load per core before a launch above which other programs may have disturbed it."""
SLOWED = 0.05
"""Slowdown by timers above which the phases of instrumented launches are questionable."""
MOST_ROWS = 400
"""Limit of launches in the table of the page; exported files have all."""


def threats_section(results: StudyAnalysis) -> Section:
    return Section("Threats to validity", points=list(_threats(results)), folded=True)


def _threats(results: StudyAnalysis) -> Iterator[str]:
    plain = plain_groups(results)
    few = [group for group in plain if len(group.launches) < ENOUGH]
    if few:
        yield (
            f"{len(few)} of {len(plain)} configurations have fewer than {ENOUGH} launches, too "
            "few to check the assumption of normality behind their intervals."
        )
    yield from (f"{line[:1].upper()}{line[1:]}." for line in results.warnings)
    yield from _lost(results)
    yield from _machine(results)
    for explanation in results.explanations:
        timed, without = explanation.observed.step.mean, explanation.measured.step.mean
        if abs(timed / without - 1) > SLOWED:
            yield (
                f"Instrumented launches have a step of {format_seconds(timed)}, plain ones "
                f"{format_seconds(without)}; phases and causes refer to the instrumented ones."
            )
    if any((one.job.get("data") or {}).get("kind") == "synthetic" for one in results.launches):
        yield "Data is synthetic and in memory: times exclude reading and decoding of files."
    yield f"Not controlled: {', '.join(UNCONTROLLED)}."


def _lost(results: StudyAnalysis) -> Iterator[str]:
    lost = [one for one in results.launches if one.status is not Status.FINISHED]
    if lost:
        yield f"{plural(len(lost), 'launch')} did not finish; excluded (see the appendix)."
    unsteady = sum(one.status is Status.FINISHED and not one.is_steady for one in results.launches)
    if unsteady:
        yield f"{plural(unsteady, 'launch')} never reached a steady state; excluded."
    restarted = sum(one.outcome.facts.get("restarts", 0) > 0 for one in results.launches)
    if restarted:
        yield f"{plural(restarted, 'launch')} lost a node and started again on other nodes."


def _machine(results: StudyAnalysis) -> Iterator[str]:
    launches = results.launches
    loads = [
        (load, one.environment.get("cores") or 1)
        for one in launches
        if (load := one.outcome.facts.get("load_before")) is not None
    ]
    if any(load > BUSY * cores for load, cores in loads):
        yield (
            f"The machine was not idle: the load average was {describe_load(launches)} before "
            "launches. Other programs used part of the reported time."
        )
    emulated = {text for one in launches if (text := describe_emulation(one) or describe_lab(one))}
    if emulated:
        yield f"Parts were emulated: {', '.join(sorted(emulated))}."
    hosts = {host for one in launches for host in one.outcome.facts.get("rank_hosts", ())}
    if len({one.environment.get("cpu_model") for one in launches}) == 1:
        where = f"{len(hosts)} hosts" if len(hosts) > 1 else "one machine"
        yield f"All launches ran on {where}; results for other machines are predictions."


def appendix_section(results: StudyAnalysis) -> Section:
    """Distribution of steps, every launch, and the commands to reproduce the study."""
    shown = results.launches[:MOST_ROWS]
    note = "In order of execution."
    if len(results.launches) > len(shown):
        note += (
            f" The first {len(shown)} of {len(results.launches)}; 'paceline study export' has all."
        )
    table = launch_table(shown, note, of_one_study=True)
    name, plain = results.study, plain_groups(results)
    resources = resource_tables(plain, results.design.get("node_price"))
    again = f"paceline study rerun {name}" if results.design else f"paceline study show {name}"
    return Section(
        "Appendix: launches",
        tables=[*statistics_tables(plain), *resources, table],
        text="The commands below export the launches for R or pandas, write the figures for a "
        "paper, and repeat the study. Add --store FILE for a store elsewhere.",
        folded=True,
        commands=[
            f"paceline study export {file_name(name)}.csv --study {name}",
            f"paceline report {name} --figures figures",
            again,
        ],
    )
