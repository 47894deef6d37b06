"""`run_studies`: run published studies on this machine as far as possible, and write a site."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from paceline.errors import PacelineError
from paceline.frameworks.command import check_runnable
from paceline.frameworks.framework_registry import framework
from paceline.predictor.sweep.api import sweep
from paceline.publications.predict_studies import chosen_studies, predicted_lines, reproduced
from paceline.publications.publication import MeasuredPart, PublishedStudy
from paceline.publications.reproduction_result import MeasuredResult, ReproductionResult
from paceline.render.files import check_writable, write_text
from paceline.store import Store, default_store_path
from paceline.study.study import Study
from paceline.study.study_settings import StudySettings

if TYPE_CHECKING:
    from paceline.measurement.study_runner import Progress
    from paceline.report.study_analysis import StudyAnalysis


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


SHORT = "-short"
"""Suffix of study names in their short form, so that both forms fit into one store."""
PROBED_PROCESSES = 2


@dataclass(frozen=True)
class PlannedPart:
    """A part as it would run here.

    ``study`` is None, with a ``reason``, if the part cannot run. ``missing`` are frameworks that
    are not installed, with the command that installs each. A part that ``proves_parity`` also
    omits frameworks that fail the parity check.
    """

    part: MeasuredPart
    name: str
    study: Study | None
    missing: dict[str, str]
    reason: str = ""
    proves_parity: bool = False

    def result(self, store: Path) -> MeasuredResult:
        """The analysis of the launches so far."""
        return MeasuredResult(
            self.part, self.name, _analysis(store, self.name), self.missing, self.reason
        )


def planned_part(part: MeasuredPart, store: Path, short: bool = False) -> PlannedPart:
    """A part with the installed frameworks, or the reason why it cannot run."""
    settings = study_settings(part, short)
    name = part.study + (SHORT if short else "")
    missing = _missing_frameworks(settings)
    required = [one for one in part.needs if one in missing]
    if required:
        return PlannedPart(part, name, None, missing, f"{', '.join(required)} is not installed")
    usable = _without(settings, missing)
    try:
        usable.design()
    except PacelineError as error:
        return PlannedPart(part, name, None, missing, f"{error.message} ({error.hint})")
    study = Study(usable, name=name, store=store)
    proves_parity = part.parity and not short and len(usable.frameworks) > 1
    return PlannedPart(part, name, study, missing, proves_parity=proves_parity)


def study_settings(part: MeasuredPart, short: bool = False) -> StudySettings:
    """The settings of a part's study file, or those of its short form."""
    folder = resources.files("paceline").joinpath("data", "studies", "measured")
    with resources.as_file(folder.joinpath(f"{part.study}.toml")) as path:
        settings = StudySettings.read(path)
    return replace(settings, **part.short) if short else settings


def run_parts(
    parts: Sequence[PlannedPart],
    store: Path,
    on_stage: Callable[[str], None] = lambda text: None,
    on_launch: "Callable[[Progress], None]" = lambda progress: None,
) -> None:
    """Probe the machine if needed, then run the missing launches of all parts in turn."""
    from paceline.measurement.probe.machine_probe import current_profile, probe_machine

    runnable = [(part, part.study) for part in parts if part.study is not None]
    if not runnable:
        return
    with Store(store) as opened:
        profile = current_profile(opened)
        if profile is None or PROBED_PROCESSES not in profile.all_reduce:
            probe_machine(opened, (PROBED_PROCESSES,), on_stage=on_stage)
    for number, (part, study) in enumerate(runnable, start=1):
        on_stage(f"part {number} of {len(runnable)}: study {study.name}")
        if part.proves_parity:
            study.prove_parity(on_launch=lambda name: on_stage(f"parity of {name}")).check_some()
        study.run(on_launch=on_launch, extend=True)


def _missing_frameworks(settings: StudySettings) -> dict[str, str]:
    wanted = settings.factors.get("framework", settings.frameworks)
    found = {}
    for name in wanted:
        try:
            check_runnable(framework(name))
        except PacelineError:
            found[name] = f"paceline frameworks install {name}"
    return found


def _without(settings: StudySettings, missing: dict[str, str]) -> StudySettings:
    if "framework" in settings.factors:
        left = [name for name in settings.factors["framework"] if name not in missing]
        return replace(settings, factors={**settings.factors, "framework": left})
    left = [name for name in settings.frameworks if name not in missing]
    return replace(settings, frameworks=tuple(left))


def _analysis(path: Path, name: str) -> "StudyAnalysis | None":
    from paceline.report.study_analysis import analyse_study

    if not path.exists():
        return None
    with Store(path, create=False) as store:
        return analyse_study(store, name) if store.count(name) else None
