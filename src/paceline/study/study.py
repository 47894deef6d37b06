"""Study: one experiment in one store; it runs, goes on after a crash, and reports itself."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paceline.measurement.run import DEFAULT_TIMEOUT_SECONDS
from paceline.places import PREDICTED_LINK, PREDICTED_NODES
from paceline.store import Launch, Status, Store, default_store_path
from paceline.study.settings import StudySettings

if TYPE_CHECKING:
    from paceline.analyse.study_analysis import StudyAnalysis
    from paceline.measurement.study import Progress
    from paceline.report.table import Table
    from paceline.step.difference import StepDifference
    from paceline.study.explained import StudyExplanation
    from paceline.study.outlook import Outlook
    from paceline.study.throughput import Throughput
    from paceline.testing.parity_table import ParityTable

LAUNCHES_THAT_TELL = 500
"""The newest launches of a store, by which the time of others is estimated."""


class Study:
    """A designed experiment and the launches that it has so far.

    ``Study("resnet44", batch=64, processes=[1, 2])`` takes the keywords of `StudySettings`;
    ``Study.read`` takes them from TOML and ``Study.load`` finds a study that was run before,
    measured, recorded or imported. ``name`` is made of the model and the time unless given;
    ``store`` is the file of launches.
    """

    def __init__(
        self,
        model: str | StudySettings,
        *,
        name: str | None = None,
        store: Path | str | None = None,
        **settings: Any,
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
        **settings: Any,
    ) -> "Study":
        """The study that a TOML file describes; it is named after the file unless ``name`` is.

        ``settings`` stand in for those of the file, such as ``launcher``.
        """
        return cls(StudySettings.read(path, **settings), name=name or Path(path).stem, store=store)

    @classmethod
    def load(cls, name: str, store: Store | Path | str | None = None) -> "Study":
        """The study called ``name`` in a store, by default the usual one; an error if not there."""
        path = store.path if isinstance(store, Store) else store
        study = cls.__new__(cls)
        study._place(name, path, None)
        with study.open() as opened:
            if opened.design(name) is None:
                opened.study(name)
        return study

    def open(self, create: bool = False) -> Store:
        """The store of this study, to be closed by the caller."""
        return Store(self.path, create=create)

    @property
    def launches(self) -> list[Launch]:
        """Every launch so far, in the order in which they began."""
        if not self.path.exists():
            return []
        with self.open() as store:
            return store.launches(self.name)

    def prove_parity(
        self,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        on_launch: Callable[[str], None] = lambda name: None,
    ) -> "ParityTable":
        """Show that the frameworks train the same; those that do not are left out from then on.

        From the same weights and data each must have the described parameters and come to the
        losses of the reference. A study that began with these frameworks has shown it already.
        ``on_launch`` is told which framework trains next.
        """
        from paceline.testing.parity import check_parity
        from paceline.workload import zoo

        assert self.settings is not None, "only a study that has not run has parity to prove"
        list(self.settings.jobs())
        graph = zoo.build(self.settings.model)
        names = self.settings.frameworks
        with self.open(create=True) as store:
            parity = _proven_parity(store, self.name, names) or check_parity(
                graph, names, store, f"{self.name}-parity", timeout_seconds, on_launch
            )
        if parity.same:
            self.settings = replace(self.settings, frameworks=tuple(parity.same))
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
        """Run every launch; of a study that was loaded, those that are not settled yet.

        ``timeout_seconds`` is the longest that a launch may take, unless given that of the
        settings, else ten minutes. A launch that fails is recorded with its reason and tried once
        more, and the study goes on. ``on_launch`` is told before each. With ``extend`` a study of
        that name may have begun with other settings: what is missing runs.
        """
        from paceline.measurement.study import run_study

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
        """Which rule stopped the study and each configuration; empty before its end."""
        with self.open() as store:
            return dict((store.design(self.name) or {}).get("ended") or {})

    def outlook(self) -> "Outlook":
        """How many launches the study has, how many are made, and how long the others take."""
        from paceline.study.outlook import outlook

        assert self.settings is not None, "only a study with settings has an outlook"
        launches = []
        if self.path.exists():
            with self.open() as store:
                launches = store.launches(newest=LAUNCHES_THAT_TELL)
                own = store.launches(self.name)
            launches = [*(one for one in launches if one.study != self.name), *own]
        return outlook(self.settings.design(), launches, self.name)

    def effects_tables(self) -> "list[Table]":
        """What the factors do to the seconds of a step; no tables where nothing was varied."""
        from paceline.analyse.effects import study_effects
        from paceline.report.tables.effects import effects_tables

        effects = study_effects(self.launches)
        return [] if effects is None else effects_tables(effects)

    def outcome_tables(self) -> "list[Table]":
        """Accuracy of studies that train by epochs, and what launches used where it was sampled."""
        from paceline.analyse.groups import grouped
        from paceline.report.tables.resources import resource_tables

        with self.open() as store:
            design, launches = store.design(self.name) or {}, store.launches(self.name)
        used = resource_tables(grouped(launches), design.get("node_price"))
        if not any(launch.outcome.facts.get("epochs") for launch in launches):
            return used
        from paceline.analyse.accuracy import study_accuracy
        from paceline.report.tables.accuracy import accuracy_tables

        found = study_accuracy(launches, design.get("accuracy"))
        return [*(accuracy_tables(found) if found else ()), *used]

    def prepare(
        self, directory: Path | str, *, timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    ) -> tuple[list[Path], int]:
        """Write every launch and the launcher's scripts to a new directory; start nothing.

        Returns the scripts and the number of launches. `Study.collect` reads what came of them.
        """
        from paceline.measurement.prepared import prepare_study

        assert self.settings is not None, "only a study that has not run can be prepared"
        design = self.settings.design(run_here=False)
        return prepare_study(design, self.name, Path(directory), timeout_seconds)

    @classmethod
    def collect(
        cls, directory: Path | str, *, store: Path | str | None = None
    ) -> "tuple[Study, int]":
        """Record the launches of a prepared study that have run; how many have not."""
        from paceline.measurement.prepared import collect_study

        path = Path(store) if store is not None else default_store_path()
        with Store(path) as opened:
            name, _, waiting = collect_study(Path(directory).resolve(), opened)
        return cls.load(name, path), waiting

    def analyse(
        self, nodes: Sequence[int] = PREDICTED_NODES, link: str = PREDICTED_LINK
    ) -> "StudyAnalysis":
        """Everything that the launches tell; with predictions for ``nodes`` joined by ``link``."""
        from paceline.analyse.study_analysis import analyse_study

        with self.open() as store:
            return analyse_study(store, self.name, nodes, link)

    def throughput(self) -> "Throughput":
        """Samples per second of each configuration, with an interval over launches."""
        from paceline.analyse.groups import grouped
        from paceline.study.throughput import Throughput

        return Throughput(tuple(grouped(self.launches)))

    def explain(
        self, processes: int | None = None, framework: str | None = None
    ) -> "StudyExplanation":
        """Why ``processes`` (the most that ran, unless given) are slower than perfect scaling.

        A study of several frameworks explains ``framework``, by default its first.
        """
        from paceline.analyse.explain import explain
        from paceline.measurement.probe import current_profile
        from paceline.naming import look_up
        from paceline.study.explained import StudyExplanation

        with self.open() as store:
            launches, profile = store.study(self.name), current_profile(store)
        names = dict.fromkeys(launch.framework for launch in launches)
        chosen = framework or next(iter(names))
        look_up(f"framework in study {self.name}", chosen, names, f"it has {', '.join(names)}")
        own = [launch for launch in launches if launch.framework == chosen]
        return StudyExplanation.of(explain(own, processes, profile))

    def difference(
        self,
        against: str = "predicted",
        processes: int | None = None,
        framework: str | None = None,
        other_framework: str | None = None,
    ) -> "StepDifference":
        """A measured step against another, task by task (seconds).

        ``against`` is another study of the store (before and after), a launch, or "predicted";
        ``other_framework`` names whose launches of that study count.
        """
        from paceline.analyse.step_pairs import PREDICTED, kept_step, predicted_step
        from paceline.measurement.probe import current_profile
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

        An ``analysis`` that was made already is taken as it is.
        """
        from paceline.report.files import write_text
        from paceline.report.page import render
        from paceline.report.study import study_page

        return write_text(path, render(study_page(analysis or self.analyse(nodes, link))))

    def figures(self, directory: Path | str, analysis: "StudyAnalysis | None" = None) -> list[Path]:
        """Write each figure of the report as SVG, PDF and PNG, and LaTeX with their captions."""
        from paceline.report.paper.figure_set import write_figures
        from paceline.report.study import study_page

        return write_figures(study_page(analysis or self.analyse()), Path(directory))

    def __repr__(self) -> str:
        launches = self.launches
        finished = sum(launch.status is Status.FINISHED for launch in launches)
        model = self.settings.model if self.settings else launches[0].model if launches else "?"
        return f"<Study {self.name}: {model}, {finished} of {len(launches)} launches finished>"

    def _repr_html_(self) -> str:
        table = self.throughput()
        return f"<p>{escape(repr(self))}</p>{table._repr_html_() if table else ''}"


def _proven_parity(store: Store, study: str, frameworks: Sequence[str]) -> "ParityTable | None":
    """What a study that began with these frameworks found; None where it did not look."""
    from paceline.testing.parity_table import ParityTable

    document = (store.design(study) or {}).get("parity")
    found = None if document is None else ParityTable.from_json(document)
    told = set() if found is None else {row.framework for row in found.rows}
    return found if set(frameworks) <= told else None


def _of_framework(launches: Sequence[Launch], framework: str | None) -> list[Launch]:
    return [one for one in launches if framework in (None, one.framework)]


def new_name(settings: StudySettings) -> str:
    """A name that says what and when: the model, and the date and time of day."""
    kind = "compare-" if len(settings.frameworks) > 1 else ""
    return f"{kind}{settings.model}-{datetime.now():%m%d-%H%M%S}"
