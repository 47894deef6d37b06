"""Study: one experiment in one store; run, resume, analyse, report."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

from paceline.measurement.run_job import DEFAULT_TIMEOUT_SECONDS
from paceline.render.result import PublicResult
from paceline.spec.study_options import SettingOptions, StudyOptions
from paceline.store import Launch, Status, Store, default_store_path
from paceline.study import study_result
from paceline.study.study_settings import StudySettings
from paceline.topology import PREDICTED_LINK, PREDICTED_NODES
from paceline.units import plural

if TYPE_CHECKING:
    from paceline.analysis.parity_result import ParityTable
    from paceline.explanation.study_explanation import StudyExplanation
    from paceline.measurement.study_runner import Progress
    from paceline.render.table import Table
    from paceline.report.study_analysis import StudyAnalysis
    from paceline.step.difference import StepDifference
    from paceline.study.study_check_tables import StudyCheck
    from paceline.study.study_estimate import StudyEstimate
    from paceline.study.throughput_table import Throughput

LAUNCHES_FOR_ESTIMATE = 500
"""Number of launches of a store, the newest, from which the time of others is estimated."""


class Study(PublicResult):
    """A designed experiment and its launches so far.

    ``Study("resnet44", batch=64, processes=[1, 2])`` takes the keywords of `StudySettings`;
    ``Study.read`` reads them from TOML, and ``Study.load`` loads an existing study (measured,
    recorded or imported). The default ``name`` consists of the model and the time; ``store`` is
    the path of the store.
    """

    schema: ClassVar[str] = "measure/1"

    def __init__(
        self,
        model: str | StudySettings = StudySettings.model,
        *,
        name: str | None = None,
        store: Path | str | None = None,
        **settings: Unpack[SettingOptions],
    ) -> None:
        if not isinstance(model, StudySettings):
            model = StudySettings.of(model=model, **settings)
        self._place(name or new_name(model), store, model)

    def _place(self, name: str, store: Path | str | None, settings: StudySettings | None) -> None:
        self.name = name
        self.path = Path(store) if store is not None else default_store_path()
        self.settings = settings
        self._parity: ParityTable | None = None
        self._begun = settings is None

    @classmethod
    def read(
        cls,
        path: Path | str,
        *,
        name: str | None = None,
        store: Path | str | None = None,
        **settings: Unpack[StudyOptions],
    ) -> "Study":
        """Read a study from a TOML file; its default ``name`` is that in the file, else the file's.

        ``settings``, such as ``launcher``, override those of the file.
        """
        from paceline.study.study_file import study_file_name

        read = StudySettings.read(path, **settings)
        return cls(read, name=name or study_file_name(Path(path)), store=store)

    @classmethod
    def load(cls, name: str, store: Store | Path | str | None = None) -> "Study":
        """Load the study ``name`` from a store [the default store]; an error if it is missing."""
        path = store.path if isinstance(store, Store) else store
        study = cls.__new__(cls)
        study._place(name, path, None)
        with study.open() as opened:
            if opened.design(name) is None:
                opened.study(name)
        return study

    def open(self, create: bool = False) -> Store:
        """Open the store of this study; the caller closes it."""
        return Store(self.path, create=create)

    @property
    def launches(self) -> list[Launch]:
        """Every launch so far, in order of their start."""
        if not self.path.exists():
            return []
        with self.open() as store:
            return store.launches(self.name)

    def prove_parity(
        self,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        on_launch: Callable[[str], None] = lambda name: None,
    ) -> "ParityTable":
        """Check parity of the frameworks; those that fail are left out from then on.

        With the same weights and data, each must have the expected number of parameters and the
        losses of the reference. A study that began with these frameworks has passed already.
        ``on_launch`` is called with the name of the next framework.
        """
        from paceline.analysis.parity import check_parity
        from paceline.workload import zoo

        assert self.settings is not None, "parity needs a study with settings"
        list(self.settings.jobs())
        graph = zoo.build(self.settings.model)
        names = self.settings.compared_frameworks or self.settings.frameworks
        with self.open(create=True) as store:
            parity = _proven_parity(store, self.name, names) or check_parity(
                graph, names, store, f"{self.name}-parity", timeout_seconds, on_launch
            )
        if parity.same:
            self.settings = self.settings.without_frameworks(parity.same)
        self._parity = parity
        return parity

    def run(
        self,
        *,
        timeout_seconds: float | None = None,
        port: int | None = None,
        on_launch: "Callable[[Progress], None]" = lambda progress: None,
        extend: bool = False,
    ) -> "Study":
        """Run every launch or, for a loaded study, the remaining ones.

        ``timeout_seconds`` is the timeout of a launch [that of the settings, else ten minutes]. A
        failed launch is recorded with its reason and repeated once. ``on_launch`` is called before
        each launch. With ``extend`` an existing study takes the new settings, and its missing
        launches run.
        """
        from paceline.measurement.study_runner import run_study

        design = None
        if self.settings is not None and not self._begun:
            design = self.settings.design()
            if self._parity is not None:
                design = replace(design, parity=self._parity.to_json())
        with self.open(create=True) as store:
            self._begun = True
            run_study(store, self.name, design, timeout_seconds, port, on_launch, extend)
        return self

    @property
    def ended(self) -> dict[str, Any]:
        """Rule that stopped the study and each configuration; empty before its end."""
        return dict(self.recorded_design.get("ended") or {})

    @property
    def recorded_design(self) -> dict[str, Any]:
        """The design in the store as JSON values; empty before the study began."""
        if not self.path.exists():
            return {}
        with self.open() as store:
            return store.design(self.name) or {}

    def time_estimate(self) -> "StudyEstimate":
        """Number of launches, number of completed ones, and estimated time of the others."""
        from paceline.study.study_estimate import time_estimate

        assert self.settings is not None, "a time estimate needs a study with settings"
        launches = []
        if self.path.exists():
            with self.open() as store:
                launches = store.launches(newest=LAUNCHES_FOR_ESTIMATE)
                own = store.launches(self.name)
            launches = [*(one for one in launches if one.study != self.name), *own]
        return time_estimate(self.settings.design(), launches, self.name)

    def check(self) -> "StudyCheck":
        """Factors, aliased effects and the estimated time, without running anything."""
        from paceline.study.study_check_tables import StudyCheck

        assert self.settings is not None, "a check needs a study with settings"
        return StudyCheck(self.name, self.settings, self.time_estimate())

    @property
    def has_results(self) -> bool:
        """Whether a launch finished."""
        return any(launch.status is Status.FINISHED for launch in self.launches)

    def effects_tables(self) -> "list[Table]":
        """Effects of the factors on step time; no tables without factors."""
        from paceline.analysis.effect_tables import effects_tables
        from paceline.analysis.effects import study_effects

        effects = study_effects(self.launches, self.recorded_design)
        return [] if effects is None else effects_tables(effects)

    def outcome_tables(self) -> "list[Table]":
        """Accuracy of studies that train by epochs, and sampled resource use of launches."""
        from paceline.analysis.configurations import grouped
        from paceline.analysis.resource_tables import resource_tables

        with self.open() as store:
            design, launches = store.design(self.name) or {}, store.launches(self.name)
        used = resource_tables(grouped(launches), design.get("node_price"))
        if not any(launch.outcome.facts.get("epochs") for launch in launches):
            return used
        from paceline.analysis.accuracy import study_accuracy
        from paceline.analysis.accuracy_tables import accuracy_tables

        found = study_accuracy(launches, design.get("accuracy"))
        return [*(accuracy_tables(found) if found else ()), *used]

    def prepare(
        self, directory: Path | str, *, timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    ) -> tuple[list[Path], int]:
        """Write every launch and the scripts of the launcher to a new directory.

        Returns the scripts and the number of launches. `Study.collect` reads their results.
        """
        from paceline.measurement.dry_run import prepare_study

        assert self.settings is not None, "prepare needs a study with settings"
        design = self.settings.design(run_here=False)
        return prepare_study(design, self.name, Path(directory), timeout_seconds)

    @classmethod
    def collect(
        cls, directory: Path | str, *, store: Path | str | None = None
    ) -> "tuple[Study, int]":
        """Record the completed launches of a prepared study; also returns the number of others."""
        from paceline.measurement.dry_run import collect_study

        path = Path(store) if store is not None else default_store_path()
        with Store(path) as opened:
            name, _, waiting = collect_study(Path(os.path.realpath(directory)), opened)
        return cls.load(name, path), waiting

    def analyse(
        self, nodes: Sequence[int] = PREDICTED_NODES, link: str = PREDICTED_LINK
    ) -> "StudyAnalysis":
        """Analyse the launches, with predictions for ``nodes`` connected by ``link``."""
        from paceline.report.study_analysis import analyse_study

        with self.open() as store:
            return analyse_study(store, self.name, nodes, link)

    def throughput(self) -> "Throughput":
        """Throughput of each configuration (samples/s), with an interval over launches."""
        from paceline.analysis.configurations import grouped
        from paceline.study.throughput_table import Throughput

        return Throughput(tuple(grouped(self.launches)))

    def explain(
        self, processes: int | None = None, framework: str | None = None
    ) -> "StudyExplanation":
        """Explain the difference of ``processes`` [the largest number] from perfect scaling.

        For a study of several frameworks, explain ``framework`` [the first with a finished
        launch].
        """
        from paceline.analysis.configurations import finished
        from paceline.explanation.explain_step import explain
        from paceline.explanation.study_explanation import StudyExplanation
        from paceline.measurement.probe.machine_probe import current_profile
        from paceline.naming import look_up

        with self.open() as store:
            launches, profile = store.study(self.name), current_profile(store)
        names = dict.fromkeys(launch.framework for launch in finished(launches))
        chosen = framework or next(iter(names))
        look_up(
            f"framework in study {self.name}", chosen, names, f"choose one of {', '.join(names)}"
        )
        own = [launch for launch in launches if launch.framework == chosen]
        return StudyExplanation(**vars(explain(own, processes, profile)), study=self.name)

    def difference(
        self,
        against: str = "predicted",
        processes: int | None = None,
        framework: str | None = None,
        other_framework: str | None = None,
    ) -> "StepDifference":
        """Compare a measured step with another one, task by task (seconds).

        ``against`` is another study of the store (before and after), a launch, or "predicted";
        ``other_framework`` selects the launches of that study.
        """
        from paceline.explanation.step_pairs import PREDICTED, kept_step, predicted_step
        from paceline.measurement.probe.machine_probe import current_profile
        from paceline.step.difference import step_difference

        with self.open() as store:
            launches, profile = store.study(self.name), current_profile(store)
            launch, step = kept_step(_of_framework(launches, framework), processes)
            if against == PREDICTED:
                other = predicted_step(launches, launch, profile)
            else:
                known = against in store.studies()
                found = store.study(against) if known else [store.launch(against)]
                _, other = kept_step(_of_framework(found, other_framework))
        return step_difference(other, step)

    def report(
        self,
        path: Path | str,
        nodes: Sequence[int] = PREDICTED_NODES,
        link: str = PREDICTED_LINK,
        analysis: "StudyAnalysis | None" = None,
    ) -> Path:
        """Write one self-contained HTML page about the study and return its path.

        An existing ``analysis`` is used as it is.
        """
        from paceline.render.files import write_text
        from paceline.render.html_page import render
        from paceline.report.study_page import study_page

        return write_text(path, render(study_page(analysis or self.analyse(nodes, link))))

    def figures(self, directory: Path | str, analysis: "StudyAnalysis | None" = None) -> list[Path]:
        """Write each figure of the report as SVG, PDF, PNG and CSV, and LaTeX for a paper."""
        from paceline.render.figure_files.figure_set import write_figures
        from paceline.render.files import write_text
        from paceline.report.study_page import study_page
        from paceline.report.study_sections.methods import bibtex, methods_latex

        found, folder = analysis or self.analyse(), Path(directory)
        written = write_figures(study_page(found), folder)
        texts = {"methods.tex": methods_latex(found), "paceline.bib": bibtex(found)}
        return [*written, *(write_text(folder / name, f"{own}\n") for name, own in texts.items())]

    def parts(self) -> "list[str | Table]":
        """Throughput of each configuration, or the ranking of frameworks; accuracy and effects."""
        return study_result.study_parts(self)

    def warnings(self) -> list[str]:
        """Doubtful results, and launches without results."""
        return study_result.study_warnings(self)

    def summary(self) -> str:
        """Name, model and number of launches."""
        launches = self.launches
        finished = sum(launch.status is Status.FINISHED for launch in launches)
        model = self.settings.model if self.settings else launches[0].model if launches else "?"
        return f"{self.name}: {model}, {finished} of {plural(len(launches), 'launch')} finished"

    def to_dict(self) -> dict[str, Any]:
        """Settings, outcome and results of each launch."""
        return study_result.study_fields(self)

    def rows(self) -> list[dict[str, Any]]:
        """One row per launch."""
        return list(self.to_dict()["launches"])


def _proven_parity(store: Store, study: str, frameworks: Sequence[str]) -> "ParityTable | None":
    """Recorded parity of a study that began with these frameworks; None without a record."""
    from paceline.analysis.parity_result import ParityTable

    document = (store.design(study) or {}).get("parity")
    found = None if document is None else ParityTable.from_json(document)
    checked = set() if found is None else {row.framework for row in found.rows}
    return found if set(frameworks) <= checked else None


def _of_framework(launches: Sequence[Launch], framework: str | None) -> list[Launch]:
    return [one for one in launches if framework in (None, one.framework)]


def new_name(settings: StudySettings) -> str:
    """Default name: the model, the date and the time."""
    kind = "compare-" if len(settings.frameworks) > 1 else ""
    return f"{kind}{settings.model}-{datetime.now():%m%d-%H%M%S}"
