"""run_studies: published studies done on this machine as far as it goes, and a site about them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from paceline.analyse.published_studies import PublishedStudy
from paceline.analyse.study_results import StudyResults
from paceline.api.predictions import sweep
from paceline.api.reproduction import chosen_studies, predicted_lines, reproduced
from paceline.store import default_store_path
from paceline.study.measured_parts import PlannedPart, planned_part, run_parts

if TYPE_CHECKING:
    from paceline.measurement.study import Progress

PlannedStudies = list[tuple[PublishedStudy, list[PlannedPart]]]
"""Studies with the parts that are measured here."""


def run_studies(
    names: str | Sequence[str] = (),
    *,
    store: Path | str | None = None,
    short: bool = False,
    site: Path | str | None = None,
    on_stage: Callable[[str], None] = lambda words: None,
    on_launch: "Callable[[Progress], None]" = lambda progress: None,
) -> list[StudyResults]:
    """Measure published studies on this machine, predict the rest, and write pages to ``site``.

    ``names`` are studies by name or letter [all]. Launches are kept in ``store``; those that are
    there are not run again, so that the same call goes on after an interrupt. ``short`` makes
    fewer and smaller launches. What cannot run here is said in the results.
    """
    path = Path(store) if store is not None else default_store_path()
    plan = planned_studies(names, path, short)
    run_parts([part for _, parts in plan for part in parts], path, on_stage, on_launch)
    results = study_results(plan, path, on_stage)
    if site is not None:
        write_studies_site(results, site)
    return results


def planned_studies(
    names: str | Sequence[str] = (), store: Path | None = None, short: bool = False
) -> PlannedStudies:
    """Which parts of which studies can run here, and why others cannot."""
    path = store or default_store_path()
    return [
        (study, [planned_part(part, path, short) for part in study.measured])
        for study in chosen_studies(names)
    ]


def study_results(
    plan: PlannedStudies, store: Path, on_stage: Callable[[str], None] = lambda words: None
) -> list[StudyResults]:
    """What the launches of a store tell of planned studies, with all that is predicted."""
    found = []
    for study, parts in plan:
        on_stage(f"predictions for study {study.letter}")
        found.append(
            StudyResults(
                reproduced(study),
                [(curves, predicted_lines(curves)) for curves in study.predicted],
                [(one, sweep(axes=one.axis, **one.job)) for one in study.sweeps],
                [part.result(store) for part in parts],
            )
        )
    return found


def write_studies_site(results: Sequence[StudyResults], directory: Path | str) -> Path:
    """Write a page for each study and ``index.html``; the path of the latter.

    Pages are self-contained and ask nothing of the network.
    """
    from paceline.report.files import write_text
    from paceline.report.page import render
    from paceline.report.reproduced import site_pages

    folder = Path(directory)
    for name, page in site_pages(results).items():
        write_text(folder / name, render(page))
    return folder / "index.html"
