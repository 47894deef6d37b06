"""Predictions for this machine and for nodes like it, from what a store knows of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from paceline.analyse.comparison import Comparison, compare_processes
from paceline.analyse.groups import LaunchGroup, grouped, ran_as_it_is
from paceline.analyse.machine_evidence import machine_corrections, machine_evidence
from paceline.analyse.measured_job import MeasuredJob, measured_job
from paceline.errors import InputError
from paceline.hardware.link import Link
from paceline.hardware.machine import machine_cluster
from paceline.hardware.profile import MachineProfile
from paceline.places import Place
from paceline.plan.plan import Plan
from paceline.predictor.predict import predict
from paceline.predictor.prediction import Prediction
from paceline.store import Launch
from paceline.workload.workload import Workload


@dataclass(frozen=True)
class HerePredictions:
    """Predictions for places like this machine, beside what was measured of them.

    ``alone`` are the launches on one process that they start from; None for a job that never
    ran here, of which only the machine is known.
    """

    comparisons: tuple[Comparison, ...]
    alone: LaunchGroup | None = None


def predict_here(
    launches: Sequence[Launch],
    profile: MachineProfile | None,
    workload: Callable[[], Workload],
    places: Sequence[Place] = (),
    link: Link | None = None,
    *,
    model: str,
    batch: int | None = None,
    framework: str | None = None,
    precision: str | None = None,
    sequence: int | None = None,
) -> HerePredictions:
    """Predict processes of this machine, or nodes like it joined by ``link``.

    ``places`` are [every number of processes that ran co-located]. Launches of the job as it is
    asked for are the evidence; of a job that never ran, ``workload`` is predicted from the
    machine's profile.
    """
    own = [
        one
        for one in launches
        if one.model == model and one.provenance == "measured" and ran_as_it_is(one)
    ]
    if any(nodes > 1 for nodes, _ in places) and link is None:
        raise InputError("several nodes, and no network between them", "name it: --link eth_10g")
    try:
        job = measured_job(
            own, batch=batch, framework=framework, precision=precision, sequence=sequence
        )
    except InputError:
        if profile is None:
            raise _nothing_known(model) if not own else _needs(model, batch) from None
        return _never_run(workload(), profile, places, link, framework)
    return _as_measured(job, profile, places, link)


def _as_measured(
    job: MeasuredJob,
    profile: MachineProfile | None,
    places: Sequence[Place],
    link: Link | None,
) -> HerePredictions:
    counts = [(1, processes) for processes in sorted(job.evidence.colocation)]
    comparisons: list[Comparison] = []
    for nodes, processes in places or counts:
        if nodes > 1 and processes > 1:
            raise InputError(
                "several processes on each of several nodes were never measured here",
                "one process a node: --nodes 4,8, or a cluster of the catalogue: --cluster NAME",
            )
        if nodes > 1 and link is not None:
            comparisons.append(Comparison(job.on_nodes(nodes, link, profile)))
            continue
        if profile is None and processes > 1:
            raise InputError("this machine has no recent profile", "'paceline probe' measures it")
        found = job.on_processes(processes, profile)
        comparisons += compare_processes([found], job.launches, job.key)
    if not comparisons:
        raise InputError(
            "no place to predict for",
            "-j 1x2 for processes here (measured with --no-sync first), or --nodes 4 --link "
            "eth_10g",
        )
    alone = next(
        group
        for group in grouped(job.launches)
        if group.first.world_size == 1 and group.first.instrument == "none"
    )
    return HerePredictions(tuple(comparisons), alone)


def _never_run(
    workload: Workload,
    profile: MachineProfile,
    places: Sequence[Place],
    link: Link | None,
    framework: str | None,
) -> HerePredictions:
    found = [
        predict_from_profile(
            workload, profile, (nodes, each), link, Plan(dp=nodes * each, framework=framework)
        )
        for nodes, each in places or [(1, 1)]
    ]
    return HerePredictions(tuple(map(Comparison, found)))


def predict_from_profile(
    workload: Workload, profile: MachineProfile, place: Place, link: Link | None, plan: Plan
) -> Prediction:
    """A job that never ran, on processes of this machine or on nodes like it joined by ``link``."""
    nodes, processes = place
    evidence = machine_evidence(profile)
    return predict(
        workload,
        machine_cluster(profile, processes, nodes, link),
        plan,
        evidence=evidence if nodes == 1 else replace(evidence, all_reduce={}),
        corrections=machine_corrections(profile),
    )


def _nothing_known(model: str) -> InputError:
    return InputError(
        f"no launch of '{model}' on this machine, and no other place is named",
        f"'paceline measure --model {model} -j 1x1,1x2 --instrument none,layers "
        "--no-sync' measures it; 'paceline probe' measures the machine; --cluster NAME "
        "predicts elsewhere",
    )


def _needs(model: str, batch: int | None) -> InputError:
    words = "" if batch is None else f" --batch {batch}"
    return InputError(
        f"launches of '{model}' do not suffice to predict the job as asked",
        f"'paceline measure --model {model}{words} -j 1x1 --instrument none,layers' makes those "
        "that are missing",
    )
