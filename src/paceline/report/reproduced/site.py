"""Pages of the site: one for each study, and the index with every number that can be compared."""

from collections.abc import Sequence

from paceline import __version__
from paceline.analyse.study_results import MeasuredResult, StudyResults
from paceline.report.page import Fact, Page, PageLink, Section
from paceline.report.reproduced.measured import (
    answer,
    measured_section,
    missing_points,
    placeless,
)
from paceline.report.reproduced.predicted import (
    bottleneck_words,
    predicted_section,
    sweeps_section,
)
from paceline.report.reproduced.published import (
    agreement_figure,
    difference_points,
    published_section,
)
from paceline.report.reproduced.ways import crossovers, ways_table
from paceline.report.study_sections.closing import threats_section
from paceline.report.study_sections.opening import load_words
from paceline.report.table import Column, Table
from paceline.report.tables.reproduction import points_table
from paceline.store import Launch

INDEX = "index.html"


def site_pages(results: Sequence[StudyResults]) -> dict[str, Page]:
    """Every page of the site by its file."""
    links = [PageLink("All studies", INDEX)]
    links += [PageLink(_title(one), _file(one)) for one in results]
    return {
        INDEX: index_page(results, links),
        **{_file(one): study_page(one, links) for one in results},
    }


def study_page(results: StudyResults, links: Sequence[PageLink] = ()) -> Page:
    """A study: question, design, measured, predicted, published, differences, what is missing."""
    found = results.reproduction
    study = found.study
    sections = [
        Section("Question", text=f"{study.question}\n\n{study.paper}.", points=_answers(results)),
        _design_section(results),
        *map(measured_section, results.measured),
        predicted_section(results),
        sweeps_section(results),
        published_section(found),
        Section("Where they differ, and why", points=difference_points(found))
        if found.points
        else None,
        Section("What cannot be reproduced here", points=_left_out(results)),
        _threats_section(results),
    ]
    return Page(
        title=f"{study.letter}. {study.question}",
        subtitle=study.paper,
        verdict=_answers(results)[:2],
        facts=_facts(results),
        sections=[section for section in sections if section is not None],
        provenance=_provenance([results]),
        links=links,
    )


def index_page(results: Sequence[StudyResults], links: Sequence[PageLink] = ()) -> Page:
    """All studies, and one table with every number that can be compared."""
    reproductions = [one.reproduction for one in results]
    measured = [(one, part) for one in results for part in one.measured]
    sections = [
        Section(
            "The studies",
            text="Each has a page: its question, what was measured here, what is predicted for "
            "the machines it used, what it published, and where they differ.",
            tables=[_studies_table(results)],
        ),
        Section(
            "Every number that can be compared",
            tables=[points_table(reproductions)],
            figures=[agreement_figure(reproductions)],
        )
        if any(one.points for one in reproductions)
        else None,
        _validated_section([part for _, part in measured]),
        Section("Measured here", tables=[measured_table(measured)], points=answers(measured)),
        Section(
            "What cannot be reproduced here",
            points=list(dict.fromkeys(words for one in results for words in _left_out(one))),
        ),
    ]
    return Page(
        title="Published studies of distributed training, done with Paceline",
        subtitle="Measured on this machine as far as it goes, predicted for the machines that "
        "were used, compared with what was published",
        verdict=_summary(results),
        sections=[section for section in sections if section is not None],
        provenance=_provenance(results),
        links=links,
    )


def _file(results: StudyResults) -> str:
    return f"{results.reproduction.study.name}.html"


def _title(results: StudyResults) -> str:
    study = results.reproduction.study
    return f"{study.letter}. {study.paper.partition('(')[0].strip()}"


def _answers(results: StudyResults) -> list[str]:
    """What the study comes to, the comparison with its published numbers first."""
    found, told = results.reproduction, []
    if found.mean_error is not None:
        covered = sum(point.covered for point in found.points)
        told.append(
            f"{len(found.points)} published values are predicted with a mean error of "
            f"{found.mean_error:.0%}; {covered} lie in their 90 % intervals."
        )
    told += [f"{part.part.what}: {answer(part)}" for part in results.measured]
    return told + bottleneck_words(results)


def answers(parts: Sequence[tuple[StudyResults, MeasuredResult]]) -> list[str]:
    """What each part says, with the letter of its study."""
    return [
        f"{one.reproduction.study.letter}. {part.part.what}: {answer(part)}" for one, part in parts
    ]


def _design_section(results: StudyResults) -> Section:
    return Section(
        "Design",
        text="Study files that come with Paceline, run by `paceline reproduce --run`; each launch "
        "starts its processes afresh, and intervals are over launches.",
        tables=[measured_table([(results, part) for part in results.measured])],
    )


def measured_table(parts: Sequence[tuple[StudyResults, MeasuredResult]]) -> Table:
    """A row for each part: how often it was launched, and beside what load."""
    return Table.of(
        parts,
        (Column("study"), lambda row: row[0].reproduction.study.letter),
        (Column("part"), lambda row: row[1].part.what),
        (Column("name in the store"), lambda row: row[1].study),
        (Column("launches", decimals=0), lambda row: len(_launches(row[1]))),
        (Column("load before launches"), lambda row: load_words(_launches(row[1]))),
    )


def _studies_table(results: Sequence[StudyResults]) -> Table:
    return Table.of(
        results,
        (Column("study"), lambda one: one.reproduction.study.letter),
        (Column("paper"), lambda one: one.reproduction.study.paper),
        (Column("question"), lambda one: one.reproduction.study.question),
        (Column("launches here", decimals=0), lambda one: len(_all_launches([one]))),
        (Column("published values", decimals=0), lambda one: len(one.reproduction.points)),
        (
            Column("mean error", "%", scale=100.0, decimals=0),
            lambda one: one.reproduction.mean_error,
        ),
        (
            Column("in their interval", decimals=0),
            lambda one: sum(point.covered for point in one.reproduction.points),
        ),
    )


def _validated_section(parts: Sequence[MeasuredResult]) -> Section | None:
    """Predictions of this machine beside its measurements."""
    told = [part.ways for part in parts if part.ways]
    if not told:
        return None
    rows = [(ways[0].where or "processes of this machine", *crossovers(ways)) for ways in told]
    table = Table.of(
        rows,
        (Column("where"), lambda row: row[0]),
        (Column("measured", "samples", decimals=0), lambda row: row[1]),
        (Column("predicted", "samples", decimals=0), lambda row: row[2]),
        title="Batch from which data parallelism is faster",
        note="Between two batches that were tried; none where the order did not change.",
    )
    return Section("Predicted and measured here", tables=[table, *map(ways_table, told)])


def _left_out(results: StudyResults) -> list[str]:
    told = list(results.reproduction.study.left_out)
    for part in results.measured:
        if part.reason:
            told.append(f"{part.part.what}: {placeless(part.reason)}.")
        told += missing_points(part)
    return told


def _threats_section(results: StudyResults) -> Section | None:
    sections = [threats_section(one.analysis) for one in results.measured if one.analysis]
    points = list(dict.fromkeys(words for section in sections for words in section.points))
    return Section("Threats to validity", points=points) if points else None


def _facts(results: StudyResults) -> list[Fact]:
    found = results.reproduction
    facts = [Fact("launches here", str(len(_all_launches([results]))))]
    if found.mean_error is not None:
        covered = sum(point.covered for point in found.points)
        facts += [
            Fact("published values", str(len(found.points))),
            Fact("mean error of speeds", f"{found.mean_error:.0%}"),
            Fact("in their 90 % interval", f"{covered} of {len(found.points)}"),
        ]
    return facts


def _summary(results: Sequence[StudyResults]) -> list[str]:
    points = [point for one in results for point in one.reproduction.points]
    launches = _all_launches(results)
    told = []
    if points:
        error = sum(abs(point.error) for point in points) / len(points)
        covered = sum(point.covered for point in points)
        told.append(
            f"{len(points)} published values are predicted with a mean error of {error:.0%}; "
            f"{covered} lie in their 90 % intervals."
        )
    load = load_words(launches)
    beside = f", with a load of {load} before them" if load else ""
    return [*told, f"{len(launches)} launches ran on this machine{beside}."]


def _launches(part: MeasuredResult) -> Sequence[Launch]:
    return () if part.analysis is None else part.analysis.launches


def _all_launches(results: Sequence[StudyResults]) -> list[Launch]:
    return [launch for one in results for part in one.measured for launch in _launches(part)]


def _provenance(results: Sequence[StudyResults]) -> list[Fact]:
    launches = _all_launches(results)
    facts = [Fact("Paceline", __version__)]
    if launches:
        environment = launches[0].environment
        facts += [
            Fact("machine", f"{environment.get('cpu_model')}, {environment.get('cores')} cores"),
            Fact("launches", str(len(launches))),
            Fact("begun", min(launch.created_at for launch in launches)),
            Fact("load average before launches", load_words(launches) or "unknown"),
        ]
    return facts
