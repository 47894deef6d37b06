"""`run_studies`: run published studies on this machine as far as possible, and write a site."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from paceline.predictor.sweep.api import sweep
from paceline.publications.measured_parts import planned_part, run_parts
from paceline.publications.predict_studies import chosen_studies, predicted_lines, reproduced
from paceline.publications.publication import PublishedStudy
from paceline.publications.reproduction_result import ReproductionResult
from paceline.render.files import check_writable, write_text
from paceline.store import default_store_path

if TYPE_CHECKING:
    from paceline.measurement.study_runner import Progress

INDEX = "index.html"


def run_studies(
    names: str | Sequence[str] = (),
    *,
    store: Path | str | None = None,
    short: bool = False,
    site: Path | str | None = None,
    on_stage: Callable[[str], None] = lambda text: None,
    on_launch: "Callable[[Progress], None]" = lambda progress: None,
) -> list[ReproductionResult]:
    """Measure published studies on this machine, predict the rest, and write pages to ``site``.

    ``names`` are names or letters of studies [all]. Launches are stored in ``store``; existing
    ones are not repeated, so the same call resumes after an interrupt. ``short`` makes fewer and
    smaller launches. The results list parts that cannot run on this machine.
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
    on_stage: Callable[[str], None] = lambda text: None,
) -> list[ReproductionResult]:
    """The same from the launches in ``store``, without running any."""
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


def _results(study: PublishedStudy, store: Path, short: bool) -> ReproductionResult:
    return ReproductionResult(
        reproduced(study),
        [(curves, predicted_lines(curves)) for curves in study.predicted],
        [(one, sweep(axes=one.axis, **one.job)) for one in study.sweeps],
        [planned_part(part, store, short).result(store) for part in study.measured],
    )


def _write_site(results: Sequence[ReproductionResult], folder: Path) -> None:
    """A self-contained page for each study, and an index."""
    from paceline.publications.site import site_pages
    from paceline.render.html_page import render

    for name, page in site_pages(results).items():
        write_text(folder / name, render(page))
