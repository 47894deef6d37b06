"""Analysis of one study: one object for page, terminal and JSON."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, TypeVar

from paceline.analysis.accuracy import StudyAccuracy, study_accuracy
from paceline.analysis.completeness import Completeness, completeness
from paceline.analysis.configurations import LaunchGroup, finished, grouped, warning_lines
from paceline.analysis.effects import StudyEffects, study_effects
from paceline.analysis.parity_result import ParityTable
from paceline.analysis.ranking import Ranking, rank
from paceline.calibration.measured_job import MeasuredJob, measured_job
from paceline.calibration.prediction_error import Comparison, compare_processes
from paceline.errors import InputError
from paceline.explanation.explain_step import Explanation, explain
from paceline.hardware import catalogue
from paceline.hardware.machine_profile import MachineProfile
from paceline.measurement.probe.machine_probe import current_profile
from paceline.store import Launch, Store
from paceline.topology import PREDICTED_LINK, PREDICTED_NODES
from paceline.units import plural

T = TypeVar("T")


@dataclass(frozen=True, repr=False)
class StudyAnalysis:
    """Launches of a study and the results derived from them; unavailable results are None or empty.

    ``here`` compares predictions for processes of this machine with measurements, ``elsewhere``
    has predictions for several such nodes. ``explanations`` has one entry per framework that ran
    with one and with several processes. Studies that compare frameworks have ``rankings``, by
    number of processes, and ``parity``; studies with factors have ``effects``; studies that train
    by epochs have ``accuracy``. ``design`` is the planned design as JSON values, if any.
    """

    study: str
    launches: Sequence[Launch]
    here: Sequence[Comparison] = ()
    elsewhere: Sequence[Comparison] = ()
    explanations: Sequence[Explanation] = ()
    calibration: MeasuredJob | None = None
    profile: MachineProfile | None = None
    rankings: Mapping[int, Ranking] = field(default_factory=dict)
    parity: ParityTable | None = None
    effects: StudyEffects | None = None
    accuracy: StudyAccuracy | None = None
    design: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def groups(self) -> list[LaunchGroup]:
        """Finished launches by configuration, with throughput (samples/s) and step time (s)."""
        return grouped(self.launches)

    @cached_property
    def finished(self) -> list[Launch]:
        """The finished launches; all launches if none finished."""
        return finished(self.launches)

    def __repr__(self) -> str:
        counts = (
            f"{plural(len(self.launches), 'launch')} of {plural(len(self.groups), 'configuration')}"
        )
        return f"<StudyAnalysis {self.study}: {counts} under {', '.join(self.frameworks)}>"

    @property
    def frameworks(self) -> list[str]:
        """Frameworks in the order of their first launch."""
        return list(dict.fromkeys(launch.framework for launch in self.finished))

    @property
    def alone(self) -> LaunchGroup | None:
        """The plain one-process launches that predictions start from, if any."""
        for group in self.groups:
            if group.first.world_size == 1 and group.first.instrument == "none":
                return group
        return None

    @property
    def explanation(self) -> Explanation | None:
        """The explanation of the study's first framework, if any."""
        return self.explanations[0] if self.explanations else None

    @cached_property
    def completeness(self) -> Completeness | None:
        """What of the planned design was measured; None without a design."""
        return completeness(self.design, self.launches)

    @property
    def same_network(self) -> bool:
        """Whether all ranked frameworks passed the parity check."""
        return self.parity is not None and set(self.frameworks) <= set(self.parity.same)

    @property
    def warnings(self) -> list[str]:
        """Warnings about the measurements, one line each."""
        return warning_lines(self.groups)


def analyse_study(
    store: Store, study: str, nodes: Sequence[int] = PREDICTED_NODES, link: str = PREDICTED_LINK
) -> StudyAnalysis:
    """Calibrate, predict, compare, rank and explain a study as far as its launches allow.

    Predictions cover the process counts that ran co-located without communication, and ``nodes``
    machines like this one connected by ``link``. In a study of several frameworks these are
    ranked, and each is explained.
    """
    launches, design = store.study(study), store.design(study) or {}
    return analyse_launches(study, launches, current_profile(store), design, nodes, link)


def analyse_launches(
    study: str,
    launches: Sequence[Launch],
    profile: MachineProfile | None,
    design: Mapping[str, Any],
    nodes: Sequence[int] = PREDICTED_NODES,
    link: str = PREDICTED_LINK,
) -> StudyAnalysis:
    """Analyse given launches: all launches of a study, or those of one of its networks."""
    network = catalogue.link(link)
    by_framework: dict[str, list[Launch]] = {}
    for launch in finished(launches):
        by_framework.setdefault(launch.framework, []).append(launch)
    explanations = [
        _where_possible(partial(explain, profile=profile), own) for own in by_framework.values()
    ]
    calibration = _where_possible(measured_job, launches) if len(by_framework) == 1 else None
    here: list[Comparison] = []
    elsewhere: list[Comparison] = []
    if calibration is not None:
        if profile is not None:
            counts = sorted(set(calibration.evidence.colocation) & set(profile.all_reduce))
            predicted = [calibration.on_processes(count, profile) for count in counts]
            here = compare_processes(predicted, launches, calibration.key)
        elsewhere = [Comparison(calibration.on_nodes(n, network, profile)) for n in nodes]
    return StudyAnalysis(
        study,
        launches,
        here,
        elsewhere,
        [one for one in explanations if one is not None],
        calibration,
        profile,
        rankings_of(launches) if len(by_framework) > 1 else {},
        ParityTable.from_json(design["parity"]) if design.get("parity") else None,
        study_effects(launches, design),
        study_accuracy(launches, design.get("accuracy")),
        design,
    )


def rankings_of(launches: Sequence[Launch]) -> dict[int, Ranking]:
    """A ranking of frameworks for each number of processes, from plain launches."""
    by_processes: dict[int, list[LaunchGroup]] = {}
    for group in grouped(launches):
        first = group.first
        if first.instrument == "none" and (first.synchronised or first.world_size == 1):
            by_processes.setdefault(first.world_size, []).append(group)
    return {count: rank(_named(groups)) for count, groups in sorted(by_processes.items())}


def _named(groups: Sequence[LaunchGroup]) -> list[tuple[str, LaunchGroup]]:
    """Groups with the framework as name, or the whole configuration if that is ambiguous."""
    names = [group.first.framework for group in groups]
    if len(set(names)) < len(names):
        names = [f"{group.first.framework}: {group.description}" for group in groups]
    return list(zip(names, groups, strict=True))


def _where_possible(
    answer: Callable[[Sequence[Launch]], T], launches: Sequence[Launch]
) -> T | None:
    """The result of ``answer``, or None if the launches do not suffice."""
    try:
        return answer(launches)
    except InputError:
        return None
