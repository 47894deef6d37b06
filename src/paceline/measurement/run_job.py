"""Runs one job as one launch and records its outcome in every case."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from paceline.errors import InputError
from paceline.frameworks.adapter import FrameworkAdapter
from paceline.frameworks.command import check_runnable, worker_command
from paceline.frameworks.framework_registry import framework
from paceline.launch import (
    DEFAULT_LAUNCHER,
    Launcher,
    LaunchExit,
    LaunchRequest,
    LaunchSettings,
    launcher,
)
from paceline.measurement.environment import OtherPrograms, describe_environment, load_average
from paceline.measurement.events import (
    epoch_results,
    last_event,
    layer_timings,
    measured_step,
    rank_steps,
    read_events,
    step_parts,
    step_profile,
)
from paceline.measurement.failures import failure_reason, memory_kills, with_memory_kill
from paceline.measurement.job import Job
from paceline.measurement.resources.resource_usage import sampled, used_by_phase
from paceline.measurement.warmup_detection import with_found_warmup
from paceline.measurement.worker_states import core_use, worker_states
from paceline.store import Launch, Outcome, Status, Store
from paceline.store.database import now
from paceline.store.launch import new_launch_id

DEFAULT_TIMEOUT_SECONDS = 600.0


def run_job(
    job: Job,
    store: Store,
    study: str,
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    port: int | None = None,
    marks: Mapping[str, Any] = MappingProxyType({"position": 0}),
    detect_warmup: bool = False,
) -> Launch:
    """Run ``job`` and record the launch; a failure is recorded, not raised.

    Output and events of the ranks stay in ``launches/<id>`` in the directory of the store.
    ``marks``, such as the ``position`` in the order of the study, are recorded with the job. With
    ``detect_warmup`` the detected warm-up is not counted, at least ``warmup_steps`` of the job.
    """
    chosen = framework(job.framework)
    check_instrument(chosen, job.instrument)
    check_runnable(chosen)
    starter = launcher_for(chosen, job)
    processes = job.world_size // job.nodes
    starter.validate(job.nodes, processes)
    launch_id = new_launch_id()
    directory = launch_directory(store, launch_id)
    command = worker_command(chosen, directory)
    job_path = directory / "job.json"
    request = LaunchRequest(
        lambda rank: (*command.arguments, str(job_path), str(events_path(directory, rank))),
        directory,
        timeout_seconds,
        job.nodes,
        processes,
        lambda rank: {**thread_variables(job.threads), **command.variables},
        port,
        # On GPUs ranks share the cores (docs/explanation/reliability.md).
        cores_per_rank=job.threads if job.device == "cpu" else None,
    )
    write_job(job_path, job.for_worker(marks.get("replicate", 0)))
    environment = {
        **describe_environment(),
        "launcher": starter.name,
        "hosts": [host.name for host in starter.hosts()[: job.nodes]],
        **starter.facts(),
    }
    launch = new_launch(job, study, marks, launch_id, environment)
    # The row exists before the processes do: a launch whose owner dies reads as interrupted.
    store.start(launch)
    outcome, kills, others = launch.outcome, memory_kills(), OtherPrograms()
    try:
        with sampled(directory, job.resources):
            exited = starter.launch(request)
        outcome = outcome_of(job, directory, exited)
        outcome.facts["load_before"] = launch.environment["load_average"]
        outcome.facts["load_after"] = load_average()
        outcome = replace(outcome, reason=with_memory_kill(outcome.reason, kills))
        outcome.facts["other_busy_cores"] = others.busy_cores()
    except BaseException as error:  # also Ctrl-C and SIGTERM, which raise here
        outcome = interrupted(error)
        raise
    finally:
        ended = replace(launch, outcome=outcome)
        if detect_warmup and job.instrument == "none":  # only plain launches count as throughput
            ended = with_found_warmup(ended)
            store.complete(ended)
        else:
            store.finish(launch_id, outcome)
    return ended


def launcher_for(chosen: FrameworkAdapter, job: Job) -> Launcher:
    """Launcher of a job: the one it names, else the one its framework needs for several ranks."""
    needed = chosen.launcher if job.world_size > 1 else ""
    settings = LaunchSettings(tuple(job.hosts), named_options(job.launcher_options))
    return launcher(job.launcher or needed or DEFAULT_LAUNCHER, settings)


def named_options(texts: Sequence[str]) -> dict[str, str]:
    """Parse ``name=value`` options of a launcher."""
    options = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise InputError(
                f"'{text}' is not NAME=VALUE", "write --launcher-option partition=debug"
            )
        options[name] = value
    return options


def new_launch(
    job: Job, study: str, marks: Mapping[str, Any], launch_id: str, environment: dict[str, Any]
) -> Launch:
    """Record of a launch that begins now; ``marks`` are recorded with its job."""
    return Launch(
        id=launch_id,
        study=study,
        created_at=now(),
        framework=job.framework,
        model=job.model,
        world_size=job.world_size,
        nodes=job.nodes,
        batch_per_rank=job.batch_per_rank,
        precision=job.precision,
        instrument=job.instrument,
        synchronised=job.synchronise,
        warmup_steps=job.warmup_steps,
        job={**job.to_json(), **marks},
        environment=environment,
        outcome=Outcome(Status.RUNNING, ""),
    )


def interrupted(error: BaseException) -> Outcome:
    return Outcome(Status.INTERRUPTED, now(), str(error) or "interrupted from the keyboard")


def check_instrument(chosen: FrameworkAdapter, instrument: str) -> None:
    if instrument not in chosen.instruments:
        raise InputError(
            f"{chosen.name} does not support the instrument '{instrument}'",
            f"choose one of {', '.join(chosen.instruments)}",
        )


def launch_directory(store: Store, launch_id: str) -> Path:
    """Create the directory for the files of one launch, in the directory of the store."""
    directory = store.path.parent.resolve() / "launches" / launch_id
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        directory.mkdir(mode=0o700)
    except OSError as error:
        raise InputError(
            f"cannot create {directory}: {error}", "choose a writable directory with --store"
        ) from error
    return directory


def write_job(path: Path, job: dict[str, Any]) -> None:
    try:
        path.write_text(json.dumps(job), encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {path}: {error}", "check the free disk space") from error


def events_path(directory: Path, rank: int) -> Path:
    return directory / f"rank-{rank}.events.jsonl"


def thread_variables(threads: int) -> dict[str, str]:
    """Variables that limit the usual thread pools to ``threads``."""
    return {
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        "OPENBLAS_NUM_THREADS": str(threads),
    }


def _host_facts(exited: LaunchExit) -> dict[str, Any]:
    """Host and clock offset of each rank, and restarts, if agents reported them."""
    if not any(rank.host for rank in exited.ranks):
        return {}
    return {
        **({"restarts": exited.restarts} if exited.restarts else {}),
        "rank_hosts": [rank.host for rank in exited.ranks],
        "clock_offset_seconds": [rank.clock_offset_seconds for rank in exited.ranks],
        "clock_error_seconds": [rank.clock_error_seconds for rank in exited.ranks],
    }


def outcome_of(job: Job, directory: Path, exited: LaunchExit) -> Outcome:
    """Outcome of a launch from the event files and exit codes of its ranks."""
    ranks = [read_events(events_path(directory, rank)) for rank in range(job.world_size)]
    steps = [rank_steps(events) for events in ranks]
    complete = [step for step in steps if step is not None]
    ended = all(last_event(events, "end") is not None for events in ranks)
    hello = last_event(ranks[0], "hello") if ranks else None
    facts: dict[str, Any] = {
        "versions": hello["versions"] if hello else {},
        "cores": [(last_event(events, "hello") or {}).get("cores", []) for events in ranks],
        "thread_cores": [
            (last_event(events, "steps") or {}).get("thread_cores", []) for events in ranks
        ],
        "message_delay_seconds": [
            (last_event(events, "steps") or {}).get("message_delay_seconds", 0.0)
            for events in ranks
        ],
        "exit_codes": [rank.code for rank in exited.ranks],
        "seconds": exited.seconds,
        "directory": directory.name,
        **_host_facts(exited),
    }
    # Exit codes do not decide: a framework may crash in its teardown after complete results.
    if not (ended and len(complete) == job.world_size):
        reason = failure_reason(exited, ranks)
        return Outcome(Status.FAILED, now(), reason, tuple(complete), facts=facts)
    parts, profile = step_parts(ranks), step_profile(ranks)
    if parts:
        facts["parts"] = parts
    if profile is not None:
        facts["profile"] = profile.to_json()
    states = worker_states(job, ranks)
    if states is not None:
        facts["states"], facts["core_use"] = states.to_json(), core_use(ranks)
    if used := used_by_phase(directory, ranks):
        facts["resources"] = used
    if epochs := epoch_results(ranks):
        facts["epochs"] = epochs
    asleep = [event for event in (last_event(events, "emulated") for events in ranks) if event]
    if asleep:
        facts["scheduler"] = asleep[0]["scheduler"]
        facts["late_seconds"] = max(max(event["late_seconds"], default=0.0) for event in asleep)
    if exited.reason:
        facts["teardown"] = exited.reason
    return Outcome(
        Status.FINISHED,
        now(),
        ranks=tuple(complete),
        layers=layer_timings(ranks[0]),
        timeline=measured_step(ranks),
        facts=facts,
    )
