"""run_studies: published studies done on this machine as far as it goes, and a site about them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from paceline.analyse.published_studies import PublishedStudy
from paceline.analyse.study_results import StudyResults
from paceline.api.predictions import sweep
from paceline.api.reproduction import chosen_studies, predicted_lines, reproduced
from paceline.report.files import check_writable, write_text
from paceline.store import default_store_path
from paceline.study.measured_parts import planned_part, run_parts

if TYPE_CHECKING:
    from paceline.measurement.study import Progress

INDEX = "index.html"


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
    studies = chosen_studies(names)
    if site is not None:
        check_writable(Path(site) / INDEX)
    parts = [planned_part(part, path, short) for study in studies for part in study.measured]
    run_parts(parts, path, on_stage, on_launch)
    return studies_so_far(names, store=path, short=short, site=site, on_stage=on_stage)


def studies_so_far(
    names: str | Sequence[str] = (),
    *,
    store: Path | str | None = None,
    short: bool = False,
    site: Path | str | None = None,
    on_stage: Callable[[str], None] = lambda words: None,
) -> list[StudyResults]:
    """The same from the launches that ``store`` has, without running any."""
    path = Path(store) if store is not None else default_store_path()
    studies = chosen_studies(names)
    if site is not None:
        check_writable(Path(site) / INDEX)
    found = []
    for study in studies:
        on_stage(f"predictions for study {study.letter}")
        found.append(_results(study, path, short))
    if site is not None:
        on_stage("pages")
        _write_site(found, Path(site))
    return found


def _results(study: PublishedStudy, store: Path, short: bool) -> StudyResults:
    return StudyResults(
        reproduced(study),
        [(curves, predicted_lines(curves)) for curves in study.predicted],
        [(one, sweep(axes=one.axis, **one.job)) for one in study.sweeps],
        [planned_part(part, store, short).result(store) for part in study.measured],
    )


def _write_site(results: Sequence[StudyResults], folder: Path) -> None:
    """A page for each study and an index: self-contained, asking nothing of the network."""
    from paceline.report.page import render
    from paceline.report.reproduced import site_pages

    for name, page in site_pages(results).items():
        write_text(folder / name, render(page))
