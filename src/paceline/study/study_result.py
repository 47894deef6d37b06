"""A study as a result: the tables that `measure` and `study run` print, and their JSON."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paceline.units import plural

if TYPE_CHECKING:
    from paceline.analysis.parity_result import ParityTable
    from paceline.analysis.ranking import Ranking
    from paceline.render.table import Table
    from paceline.study.study import Study


def study_parts(study: "Study") -> "list[str | Table]":
    """Throughput or ranking of frameworks, accuracy, resources, effects, and stopping rules."""
    from paceline.analysis import ranking_tables as ranking
    from paceline.analysis.configurations import grouped
    from paceline.analysis.launch_tables import throughput_table

    launches = study.launches
    parts: list[str | Table] = [
        f"Study {study.name}: {plural(len(launches), 'launch')} in {study.path}"
    ]
    parity = parity_of(study)
    if parity is not None:
        ranked = rankings(study).items()
        parts += [ranking.parity_table(parity), *(ranking.ranking_table(*one) for one in ranked)]
    elif groups := grouped(launches):
        parts.append(throughput_table(groups))
    parts += [*study.outcome_tables(), *study.effects_tables()] if launches else []
    if study.settings is not None and study.settings.stopping:
        for one in study.ended.get("configurations", ()):
            count = plural(one["launches"], "launch")
            parts.append(f"{one['configuration']}: {count}, {one['stopped_by']}")
    return parts


def study_warnings(study: "Study") -> list[str]:
    """Frameworks left out, doubtful results, and launches without results."""
    from paceline.analysis.completeness import completeness
    from paceline.analysis.launch_tables import warnings_of
    from paceline.analysis.ranking_tables import left_out_lines

    parity, launches = parity_of(study), study.launches
    found = completeness(study.recorded_design, launches)
    return [
        *(left_out_lines(parity) if parity else ()),
        *(f"warning: {note}" for note in (found.notes if found else ())),
        *warnings_of(launches),
    ]


def study_fields(study: "Study") -> dict[str, Any]:
    """Fields of ``measure --json``; a comparison of frameworks has parity and rankings."""
    from paceline.analysis.launch_tables import launches_json
    from paceline.analysis.ranking_tables import parity_json, rankings_json

    fields: dict[str, Any] = {"study": study.name, "launches": launches_json(study.launches)}
    if ended := study.ended:
        fields["ended"] = ended
    parity = parity_of(study)
    if parity is not None:
        fields |= {"model": parity.model, "parity": parity_json(parity)}
        fields["rankings"] = rankings_json(rankings(study))
    return fields


def write_ranking(study: "Study", path: Path) -> Path:
    """Write the throughput of each framework as a figure (.svg, .pdf, .png)."""
    from paceline.analysis.ranking_tables import ranking_caption, ranking_figure
    from paceline.render.figure_files.figure_files import write_drawing
    from paceline.render.figures.drawing import draw

    found = rankings(study)
    caption = ranking_caption(found, study.launches[0].model)
    return write_drawing(path, draw(ranking_figure(found)), caption)


def parity_of(study: "Study") -> "ParityTable | None":
    """The recorded parity of the frameworks of a study; None if it compares none."""
    from paceline.analysis.parity_result import ParityTable

    document = study.recorded_design.get("parity")
    return None if document is None else ParityTable.from_json(document)


def rankings(study: "Study") -> "Mapping[int, Ranking]":
    """Ranking of the frameworks, by number of processes."""
    from paceline.report.study_analysis import rankings_of

    return rankings_of(study.launches)
