"""Pages of the site: one for each study, and the index with every number that can be compared."""

from collections.abc import Sequence

from paceline import __version__
from paceline.publications.publication import Reproduction, mean_error
from paceline.publications.reproduction_result import MeasuredResult, ReproductionResult
from paceline.publications.reproduction_tables import points_table
from paceline.publications.site.dp_vs_tp_section import (
    crossovers,
    dp_vs_tp_section,
    dp_vs_tp_table,
)
from paceline.publications.site.measured_section import (
    answer,
    measured_section,
    missing_points,
    without_paths,
)
from paceline.publications.site.predicted_section import (
    describe_bottleneck,
    predicted_section,
    sweeps_section,
)
from paceline.publications.site.published_section import (
    agreement_figure,
    difference_points,
    leading_figure,
    published_section,
)
from paceline.render.figures import figure
from paceline.render.html_page import Fact, Figure, Page, PageLink, Section
from paceline.render.table import Column, Table
from paceline.report.study_sections.closing import threats_section
from paceline.report.study_sections.opening import describe_load
from paceline.store import Launch
from paceline.units import plural

INDEX = "index.html"


def site_pages(results: Sequence[ReproductionResult]) -> dict[str, Page]:
    links = [PageLink("All studies", INDEX)]
    links += [PageLink(_title(one), _file(one)) for one in results]
    return {
        INDEX: index_page(results, links),
        **{_file(one): study_page(one, links) for one in results},
    }


def study_page(results: ReproductionResult, links: Sequence[PageLink] = ()) -> Page:
    """A study: question, design, measured, predicted, published, differences, limits."""
    found = results.reproduction
    study = found.study
    sections = [
        Section("Answers", points=_answers(results)),
        published_section(found),
        Section(
            "Differences and reasons",
            text=describe_agreement([found]),
            points=difference_points(found),
        )
        if found.points
        else None,
        predicted_section(results),
        sweeps_section(results),
        *map(measured_section, results.measured),
        _design_section(results),
        Section("Not reproducible on this machine", points=_left_out(results)),
        _threats_section(results),
    ]
    return Page(
        title=f"{study.letter}. {study.question}",
        subtitle=study.paper,
        verdict=_answers(results)[:2],
        facts=_facts([found], len(_all_launches([results]))),
        sections=[section for section in sections if section is not None],
        provenance=_provenance([results]),
        links=links,
        lead=_lead(results),
    )


def _lead(results: ReproductionResult) -> Figure | None:
    """Predictions over published values, else over measured ones, else predictions alone."""
    compared = leading_figure(results.reproduction)
    if compared is not None:
        return compared
    measured = [dp_vs_tp_section(part.dp_vs_tp) for part in results.measured if part.dp_vs_tp]
    sections = [*measured, predicted_section(results), sweeps_section(results)]
    shown = next((one.figures[0] for one in sections if one is not None and one.figures), None)
    # A figure next to another is drawn for half the page; the first figure has all of its width.
    return figure(shown.title, shown.info, shown.caption) if shown and shown.half else shown


def index_page(results: Sequence[ReproductionResult], links: Sequence[PageLink] = ()) -> Page:
    """All studies, and one table of all comparable values."""
    reproductions = [one.reproduction for one in results]
    compared = any(one.points for one in reproductions)
    measured = [(one, part) for one in results for part in one.measured]
    sections = [
        Section(
            "The studies",
            text="Each study has a page with its question, measurements on this machine, "
            "predictions for its own machines, published results and differences.",
            tables=[_studies_table(results)],
        ),
        Section(
            "All comparable values",
            text=describe_agreement(reproductions),
            tables=[points_table(reproductions)],
        )
        if compared
        else None,
        _validated_section([part for _, part in measured]),
        Section(
            "Measured on this machine", tables=[measured_table(measured)], points=answers(measured)
        ),
        Section(
            "Not reproducible on this machine",
            points=list(dict.fromkeys(reason for one in results for reason in _left_out(one))),
        ),
    ]
    return Page(
        title="Published studies of distributed training, reproduced with Paceline",
        subtitle="Measured on this machine where possible, predicted for the original machines, "
        "and compared with the published results",
        verdict=_summary(results),
        facts=_facts(reproductions, len(_all_launches(results))),
        lead=agreement_figure(reproductions) if compared else None,
        sections=[section for section in sections if section is not None],
        provenance=_provenance(results),
        links=links,
    )


def _file(results: ReproductionResult) -> str:
    return f"{results.reproduction.study.name}.html"


def _title(results: ReproductionResult) -> str:
    study = results.reproduction.study
    return f"{study.letter}. {study.paper.partition('(')[0].strip()}"


def _answers(results: ReproductionResult) -> list[str]:
    """The results of a study, the comparison with published values first."""
    found, sentences = results.reproduction, []
    if found.mean_error is not None:
        covered = sum(point.covered for point in found.points)
        sentences.append(
            f"{len(found.points)} published values are predicted with a mean error of "
            f"{found.mean_error:.0%}; {covered} are inside their 90 % intervals."
        )
    elif found.study.needed:
        sentences.append(f"No published number can be compared. It would need {found.study.needed}")
    ran = [part for part in results.measured if part.analysis is not None]
    sentences += [f"{part.part.what}: {answer(part)}" for part in ran]
    sentences += describe_bottleneck(results)
    left = [part for part in results.measured if part.analysis is None]
    return [*sentences, *(f"{part.part.what}: {answer(part)}" for part in left)]


def describe_agreement(found: Sequence[Reproduction]) -> str:
    """What mean error and coverage are, and why coverage differs from 90 %."""
    points = [point for one in found for point in one.points]
    if not points:
        return ""
    curves = [one.covered_curves for one in found if one.points]
    inside, total = (sum(each) for each in zip(*curves, strict=True))
    covered = sum(point.covered for point in points)
    return (
        "The mean error is the mean of |predicted / published - 1| over values. Of independent "
        f"values, 90 % would be inside 90 % intervals; {covered / len(points):.0%} of these are. "
        "Values of one curve share a network, a machine and the point that the prediction starts "
        f"from, so they are inside or outside together: {inside} of {total} curves are inside "
        "completely."
    )


def answers(parts: Sequence[tuple[ReproductionResult, MeasuredResult]]) -> list[str]:
    """The result of each part, with the letter of its study."""
    return [
        f"{one.reproduction.study.letter}. {part.part.what}: {answer(part)}" for one, part in parts
    ]


def _design_section(results: ReproductionResult) -> Section:
    return Section(
        "Design",
        text="Study files of the package, run by `paceline reproduce --run`; each launch restarts "
        "all processes, and intervals are over launches.",
        tables=[measured_table([(results, part) for part in results.measured])],
    )


def measured_table(parts: Sequence[tuple[ReproductionResult, MeasuredResult]]) -> Table:
    """A row for each part: number of launches and load before them."""
    return Table.of(
        parts,
        (Column("study"), lambda row: row[0].reproduction.study.letter),
        (Column("part"), lambda row: row[1].part.what),
        (Column("study"), lambda row: row[1].study),
        (Column("launches", decimals=0), lambda row: len(_launches(row[1]))),
        (Column("load before"), lambda row: describe_load(_launches(row[1]))),
    )


def _studies_table(results: Sequence[ReproductionResult]) -> Table:
    return Table.of(
        results,
        (Column("study"), lambda one: one.reproduction.study.letter),
        (Column("paper"), lambda one: one.reproduction.study.paper),
        (Column("question"), lambda one: one.reproduction.study.question),
        (Column("local launches", decimals=0), lambda one: len(_all_launches([one]))),
        (Column("published values", decimals=0), lambda one: len(one.reproduction.points)),
        (
            Column("mean error", "%", scale=100.0, decimals=0),
            lambda one: one.reproduction.mean_error,
        ),
        (
            Column("covered", decimals=0),
            lambda one: sum(point.covered for point in one.reproduction.points),
        ),
    )


def _validated_section(parts: Sequence[MeasuredResult]) -> Section | None:
    """Predictions and measurements of this machine."""
    found = [part.dp_vs_tp for part in parts if part.dp_vs_tp]
    if not found:
        return None
    rows = [
        (compared[0].where or "processes of this machine", *crossovers(compared))
        for compared in found
    ]
    table = Table.of(
        rows,
        (Column("where"), lambda row: row[0]),
        (Column("measured", "samples", decimals=0), lambda row: row[1]),
        (Column("predicted", "samples", decimals=0), lambda row: row[2]),
        title="Crossover batch of data parallelism",
        note="Interpolated between two measured batches; empty without a crossover.",
    )
    return Section(
        "Predicted and measured on this machine", tables=[table, *map(dp_vs_tp_table, found)]
    )


def _left_out(results: ReproductionResult) -> list[str]:
    reasons = list(results.reproduction.study.left_out)
    for part in results.measured:
        if part.reason:
            reasons.append(f"{part.part.what}: {without_paths(part.reason)}.")
        reasons += missing_points(part)
    return reasons


def _threats_section(results: ReproductionResult) -> Section | None:
    sections = [threats_section(one.analysis) for one in results.measured if one.analysis]
    points = list(dict.fromkeys(point for section in sections for point in section.points))
    return Section("Threats to validity", points=points) if points else None


def _facts(found: Sequence[Reproduction], launches: int) -> list[Fact]:
    facts = [Fact("launches on this machine", str(launches))] if launches else []
    points = [point for one in found for point in one.points]
    if points:
        covered = sum(point.covered for point in points)
        facts += [
            Fact("published values", str(len(points))),
            Fact("mean error", f"{mean_error(points):.0%}"),
            Fact("inside the 90 % interval", f"{covered} of {len(points)}"),
        ]
    return facts[-3:] or [Fact("published values that can be compared", "none")]


def _summary(results: Sequence[ReproductionResult]) -> list[str]:
    points = [point for one in results for point in one.reproduction.points]
    launches = _all_launches(results)
    sentences = []
    if points:
        covered = sum(point.covered for point in points)
        sentences.append(
            f"Mean error of {plural(len(points), 'published value')}: {mean_error(points):.0%}; "
            f"{covered} inside the 90 % interval."
        )
    load = describe_load(launches)
    idle = f" (load average {load} before them)" if load else ""
    return [*sentences, f"{plural(len(launches), 'launch')} ran on this machine{idle}."]


def _launches(part: MeasuredResult) -> Sequence[Launch]:
    return () if part.analysis is None else part.analysis.launches


def _all_launches(results: Sequence[ReproductionResult]) -> list[Launch]:
    return [launch for one in results for part in one.measured for launch in _launches(part)]


def _provenance(results: Sequence[ReproductionResult]) -> list[Fact]:
    launches = _all_launches(results)
    facts = [Fact("Paceline", __version__)]
    if launches:
        environment = launches[0].environment
        facts += [
            Fact("machine", f"{environment.get('cpu_model')}, {environment.get('cores')} cores"),
            Fact("launches", str(len(launches))),
            Fact("begun", min(launch.created_at for launch in launches)),
            Fact("load average before launches", describe_load(launches) or "unknown"),
        ]
    return facts
