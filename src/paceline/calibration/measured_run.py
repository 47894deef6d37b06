"""A run that a log, a trace or a launch records, as evidence for predictions of its job."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Unpack, cast

from paceline.analysis.launch_statistics import mean_step_seconds
from paceline.errors import InputError
from paceline.hardware import Cluster
from paceline.importers.api import read_log
from paceline.importers.import_launches import UserFacts
from paceline.importers.logs import ParsedLog
from paceline.predictor.evidence import Baseline, Evidence
from paceline.predictor.plan.plan import Plan
from paceline.predictor.predict import job_of, model_step
from paceline.spec.defaults import complete_job
from paceline.spec.job_options import JobOptions
from paceline.spec.resolve_cluster import cluster_of
from paceline.spec.resolve_model import Model
from paceline.spec.resolve_plan import plan_of
from paceline.spec.resolve_workload import workload_of
from paceline.store import Launch
from paceline.topology import Topology, parse_topology
from paceline.units import format_seconds, plural
from paceline.workload import zoo
from paceline.workload.precision import PRECISIONS

Source = Launch | Path | str | Sequence[Path | str]


@dataclass(frozen=True)
class MeasuredRun:
    """A measured step as ``evidence`` for `paceline.predict`.

    ``model`` and ``options`` are those of the user, completed by what the run states: model, batch
    per replica, sequence length and precision.
    """

    model: Model
    options: JobOptions
    evidence: Evidence


def measured_run(
    source: Source,
    model: Model | None = None,
    cluster: str | Path | Cluster | None = None,
    plan: Plan | None = None,
    *,
    program: str | None = None,
    series: str = "",
    **options: Unpack[JobOptions],
) -> MeasuredRun:
    """The run of ``source`` (a launch, a log, or the files of a trace) on devices of ``cluster``.

    ``model`` and ``options`` state what the files do not; ``measured_on`` is the nodes x GPUs of
    the run. What the run states describes the run: another batch in ``options`` is one to predict.
    ``program`` and ``series`` as in `paceline.read_log`.
    """
    given = options.get("measured_on")
    topology = None if given is None else parse_topology(given)
    launch = source if isinstance(source, Launch) else None
    if launch is None:
        launch = _read(cast(Path, source), program, series, topology, options.get("batch"))
    anywhere = cast(JobOptions, {**options, "nodes": None, "processes": None, "topology": None})
    target = cluster_of(cluster, anywhere)
    nodes, processes = topology or _topology(launch, target)
    model = _model(launch) if model is None else model
    small = target.shaped(nodes, processes)
    run = cast(JobOptions, {**options, **_stated(launch), "dp": None, "measured_on": None})
    if batch := launch.job.get("global_batch"):
        run["batch"], run["global_batch"] = None, round(batch)
    run = complete_job(model, small, run, plan).options
    used = _plan(plan, small.devices, run)
    workload = workload_of(model, used.dp, run)
    seconds = mean_step_seconds(launch)
    step = model_step(job_of(workload, small, used))
    own = {name: value for name, value in options.items() if value is not None}
    found = {"seq": workload.sequence, "precision": run.get("precision"), **own}
    if not own.keys() & {"batch", "global_batch"}:
        found["batch"] = workload.batch
    found.pop("measured_on", None)
    description = (
        f"{_name(launch)}: {format_seconds(seconds)} per step of {workload.batch} samples per "
        f"replica on {nodes}x{processes}"
    )
    evidence = Evidence(baseline=Baseline(step, seconds), source=description, launches=1)
    return MeasuredRun(model, cast(JobOptions, found), evidence)


def _read(
    files: Path | str | Sequence[Path | str],
    program: str | None,
    series: str,
    topology: Topology | None,
    batch: int | None,
) -> Launch:
    """The launch of a log or of the files of one trace."""
    found = read_log(files, program=program, series=series).files
    first = found[0]
    if len(found) > 1:
        raise InputError(
            f"the files hold {len(found)} runs, starting with {first.source}",
            "give one log, or the files of one trace",
        )
    nodes, processes = topology or (None, None)
    ranks = None if nodes is None or processes is None else nodes * processes
    log = first.content if isinstance(first.content, ParsedLog) else None
    if log is not None and not ranks and not log.ranks:
        raise InputError(
            f"{first.source} does not state the number of processes",
            "set --measured-on NODESxGPUS",
        )
    states_batch = log is not None and log.global_batch is not None
    facts = UserFacts("", None if states_batch else batch, ranks, nodes)
    launch = first.launch(first.source.stem, facts)
    if launch is None:
        raise InputError(f"{first.source} contains no training step", "give the log of a training")
    return launch


def _plan(plan: Plan | None, devices: int, options: JobOptions) -> Plan:
    """The plan of the run: replicas of the same degrees on ``devices``."""
    if plan is None:
        return plan_of(None, devices, options)
    replica = plan.devices // plan.dp
    if devices % replica:
        raise InputError(
            f"the run used {plural(devices, 'device')}, but a replica needs {replica} "
            f"({plan.label})",
            "give the plan of the run",
        )
    return replace(plan, dp=devices // replica, shard_group=None)


def _stated(launch: Launch) -> dict[str, object]:
    """Sequence length and precision of a launch, where they are known."""
    found: dict[str, object] = {}
    if launch.job.get("sequence"):
        found["seq"] = int(launch.job["sequence"])
    if launch.precision in PRECISIONS:
        found["precision"] = launch.precision
    return found


def _topology(launch: Launch, cluster: Cluster) -> Topology:
    """Nodes and processes per node of a launch: those it states, else as few nodes as possible."""
    ranks, each = launch.world_size, cluster.devices_per_node
    nodes = launch.nodes if launch.nodes > 1 else -(-ranks // each)
    if ranks % nodes:
        raise InputError(
            f"{_name(launch)} has {ranks} processes, which do not fill nodes of {each}",
            "set --measured-on NODESxGPUS",
        )
    return nodes, ranks // nodes


def _model(launch: Launch) -> str:
    if launch.model in zoo.names():
        return launch.model
    raise InputError(
        f"{_name(launch)} does not name a built-in model (it states '{launch.model}')",
        "set --model",
    )


def _name(launch: Launch) -> str:
    return str(launch.job.get("source") or f"launch {launch.id}")
