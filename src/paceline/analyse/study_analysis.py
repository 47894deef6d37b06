"""Everything that the launches of one study tell: one object for page, terminal and JSON."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, TypeVar

from paceline.analyse.accuracy import StudyAccuracy, study_accuracy
from paceline.analyse.comparison import Comparison, compare_processes
from paceline.analyse.effects import StudyEffects, study_effects
from paceline.analyse.explain import Explanation, explain
from paceline.analyse.groups import LaunchGroup, doubt_lines, grouped
from paceline.analyse.measured_job import MeasuredJob, measured_job
from paceline.analyse.ranking import Ranking, rank
from paceline.errors import InputError
from paceline.hardware import catalogue
from paceline.hardware.profile import MachineProfile
from paceline.measurement.probe import current_profile
from paceline.places import PREDICTED_LINK, PREDICTED_NODES
from paceline.store import Launch, Store
from paceline.testing.parity_table import ParityTable

T = TypeVar("T")


@dataclass(frozen=True, repr=False)
class StudyAnalysis:
    """Launches of a study and what follows from them; what could not be had is None or empty.

    ``here`` compares predictions for processes of this machine with their measurement,
    ``elsewhere`` holds predictions for nodes like it. ``explanations`` has one per framework
    that ran on one and on several processes. ``rankings``, by number of processes, and
    ``parity`` are of studies that compare frameworks, ``effects`` of those that vary factors,
    ``accuracy`` of those that train by epochs.
    ``design`` is what the study set out to do, as JSON values; empty where nothing was designed.
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
        """Finished launches by configuration: throughput (samples/s) and step (s) of each."""
        return grouped(self.launches)

    def __repr__(self) -> str:
        counts = f"{len(self.launches)} launches of {len(self.groups)} configurations"
        return f"<StudyAnalysis {self.study}: {counts} under {', '.join(self.frameworks)}>"

    @property
    def frameworks(self) -> list[str]:
        """Frameworks of the launches, in the order in which they first ran."""
        return list(dict.fromkeys(launch.framework for launch in self.launches))

    @property
    def alone(self) -> LaunchGroup | None:
        """The plain launches on one process that predictions start from, if there are any."""
        for group in self.groups:
            if group.first.world_size == 1 and group.first.instrument == "none":
                return group
        return None

    @property
    def explanation(self) -> Explanation | None:
        """The explanation of the study's first framework, if it has one."""
        return self.explanations[0] if self.explanations else None

    @property
    def doubts(self) -> list[str]:
        """Every reason to doubt the figures, one line each."""
        return doubt_lines(self.groups)


def analyse_study(
    store: Store, study: str, nodes: Sequence[int] = PREDICTED_NODES, link: str = PREDICTED_LINK
) -> StudyAnalysis:
    """Calibrate, predict, compare, rank and explain a study as far as its launches allow.

    Predictions are made for the process counts that were co-located without communication, and
    for ``nodes`` machines like this one joined by ``link``. A study of several frameworks is
    ranked, and its frameworks are explained one by one.
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
    """The same of launches that were read: all of a study, or those of one of its networks."""
    network = catalogue.link(link)
    by_framework: dict[str, list[Launch]] = {}
    for launch in launches:
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
        study_effects(launches),
        study_accuracy(launches, design.get("accuracy")),
        design,
    )


def rankings_of(launches: Sequence[Launch]) -> dict[int, Ranking]:
    """A ranking of the frameworks for each number of processes, from plain launches."""
    by_processes: dict[int, list[LaunchGroup]] = {}
    for group in grouped(launches):
        first = group.first
        if first.instrument == "none" and (first.synchronised or first.world_size == 1):
            by_processes.setdefault(first.world_size, []).append(group)
    return {count: rank(_named(groups)) for count, groups in sorted(by_processes.items())}


def _named(groups: Sequence[LaunchGroup]) -> list[tuple[str, LaunchGroup]]:
    """Groups by framework; by all they are where a framework has several."""
    names = [group.first.framework for group in groups]
    if len(set(names)) < len(names):
        names = [f"{group.first.framework}: {group.words}" for group in groups]
    return list(zip(names, groups, strict=True))


def _where_possible(
    answer: Callable[[Sequence[Launch]], T], launches: Sequence[Launch]
) -> T | None:
    """What ``answer`` makes of launches; None where they do not suffice."""
    try:
        return answer(launches)
    except InputError:
        return None
