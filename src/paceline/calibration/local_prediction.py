"""Predictions for this machine and for nodes like it, from launches and profile of a store."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Unpack

from paceline.analysis.configurations import LaunchGroup, grouped, ran_natively
from paceline.calibration.machine_evidence import machine_corrections, machine_evidence
from paceline.calibration.measured_job import MeasuredJob, measured_job
from paceline.calibration.prediction_error import Comparison, compare_processes
from paceline.errors import InputError
from paceline.hardware import catalogue
from paceline.hardware.link import Link
from paceline.hardware.machine_profile import MachineProfile
from paceline.hardware.this_machine import machine_cluster
from paceline.measurement.probe.machine_probe import current_profile
from paceline.predictor.plan.plan import Plan
from paceline.predictor.predict import predict
from paceline.predictor.prediction import Prediction
from paceline.spec.job_options import LocalOptions
from paceline.spec.jobs import LOCAL, check_job
from paceline.spec.resolve_model import Model
from paceline.spec.resolve_workload import workload_of
from paceline.store import Launch, Store, default_store_path
from paceline.topology import Topology
from paceline.workload.workload import Workload


@dataclass(frozen=True)
class LocalPredictions:
    """Predictions for this machine and nodes like it, with measurements if there are any.

    ``alone`` are the one-process launches that they start from; None for a job that never ran
    on this machine.
    """

    comparisons: tuple[Comparison, ...]
    alone: LaunchGroup | None = None


def predict_from_launches(
    launches: Sequence[Launch],
    profile: MachineProfile | None,
    workload: Callable[[], Workload],
    topologies: Sequence[Topology] = (),
    link: Link | None = None,
    *,
    model: str,
    batch: int | None = None,
    framework: str | None = None,
    precision: str | None = None,
    sequence: int | None = None,
) -> LocalPredictions:
    """Predict processes of this machine, or nodes like it connected by ``link``.

    ``topologies`` are nodes x processes [every number that ran co-located]. The evidence is
    launches of the job; without any, ``workload`` is predicted from the machine's profile.
    """
    own = [
        one
        for one in launches
        if one.model == model and one.provenance == "measured" and ran_natively(one)
    ]
    if any(nodes > 1 for nodes, _ in topologies) and link is None:
        raise InputError(
            "a prediction for several nodes needs a network",
            "use --link NAME, such as --link eth_10g",
        )
    try:
        job = measured_job(
            own, batch=batch, framework=framework, precision=precision, sequence=sequence
        )
    except InputError:
        if profile is None:
            raise _nothing_known(model) if not own else _needs(model, batch) from None
        return _never_run(workload(), profile, topologies, link, framework)
    return _as_measured(job, profile, topologies, link)


def _as_measured(
    job: MeasuredJob,
    profile: MachineProfile | None,
    topologies: Sequence[Topology],
    link: Link | None,
) -> LocalPredictions:
    counts = [(1, processes) for processes in sorted(job.evidence.colocation)]
    comparisons: list[Comparison] = []
    for nodes, processes in topologies or counts:
        if nodes > 1 and processes > 1:
            raise InputError(
                "no measurements for several processes on each of several nodes",
                "use one process per node (--nodes 4,8), or --cluster NAME",
            )
        if nodes > 1 and link is not None:
            comparisons.append(Comparison(job.on_nodes(nodes, link, profile)))
            continue
        if profile is None and processes > 1:
            raise InputError("no recent profile of this machine", "run 'paceline calibrate'")
        found = job.on_processes(processes, profile)
        comparisons += compare_processes([found], job.launches, job.key)
    if not comparisons:
        raise InputError(
            "no topology to predict",
            "use -j 1x2 for this machine (measure with --no-sync first), or --nodes 4 "
            "--link eth_10g",
        )
    alone = next(
        group
        for group in grouped(job.launches)
        if group.first.world_size == 1 and group.first.instrument == "none"
    )
    return LocalPredictions(tuple(comparisons), alone)


def _never_run(
    workload: Workload,
    profile: MachineProfile,
    topologies: Sequence[Topology],
    link: Link | None,
    framework: str | None,
) -> LocalPredictions:
    found = [
        predict_from_profile(
            workload, profile, (nodes, each), link, Plan(dp=nodes * each, framework=framework)
        )
        for nodes, each in topologies or [(1, 1)]
    ]
    return LocalPredictions(tuple(map(Comparison, found)))


def predict_from_profile(
    workload: Workload, profile: MachineProfile, topology: Topology, link: Link | None, plan: Plan
) -> Prediction:
    """A job without launches, on this machine or on nodes like it connected by ``link``."""
    nodes, processes = topology
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
        f"no launch of '{model}' on this machine, and no cluster is named",
        f"run 'paceline measure --model {model} -j 1x1,1x2 --instrument none,layers "
        "--no-sync' to measure it or 'paceline calibrate' to measure the machine, or use "
        "--cluster NAME",
    )


def _needs(model: str, batch: int | None) -> InputError:
    option = "" if batch is None else f" --batch {batch}"
    return InputError(
        f"too few launches of '{model}' with these options to predict the job",
        f"run 'paceline measure --model {model}{option} -j 1x1 --instrument none,layers'",
    )


def predict_local(
    model: Model | None,
    topologies: Sequence[Topology] = (),
    *,
    store: Path | None = None,
    **options: Unpack[LocalOptions],
) -> LocalPredictions:
    """Predict processes of this machine, or nodes like it connected by ``link``.

    ``topologies`` are nodes x processes [every number that ran co-located]. The evidence is
    launches of the same model, ``batch``, ``framework``, ``precision`` and ``seq``, or the
    machine's profile if there are none.
    """
    job = check_job(options, LOCAL, LocalOptions)
    if model is None:
        raise InputError(
            "no model to predict", "use --model NAME ('paceline catalog models' lists all)"
        )
    path, link = store or default_store_path(), job.get("link")
    launches, profile = [], None
    if path.exists():
        with Store(path, create=False) as opened:
            launches, profile = opened.launches(), current_profile(opened)
    return predict_from_launches(
        launches,
        profile,
        lambda: workload_of(model, 1, job),
        topologies,
        catalogue.link(link) if link else None,
        model=model if isinstance(model, str) else workload_of(model, 1, job).graph.name,
        batch=job.get("batch"),
        framework=job.get("framework"),
        precision=job.get("precision"),
        sequence=job.get("seq"),
    )
