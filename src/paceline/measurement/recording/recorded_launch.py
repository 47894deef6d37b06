"""Runs a user's command, watches it, and records it as a launch."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from paceline.errors import InputError, PacelineError
from paceline.importers.import_launches import UserFacts, launch_of_log
from paceline.importers.logs import read_log, reader_named, readers
from paceline.interrupts import held_interrupts
from paceline.launch import LaunchExit
from paceline.measurement.environment import OtherPrograms, describe_environment, load_average
from paceline.measurement.failures import memory_kills, with_memory_kill
from paceline.measurement.recording.collect import WatchedJob, read_processes, watched_job
from paceline.measurement.recording.command_runner import (
    LOG_NAME,
    run_command,
    watching_environment,
)
from paceline.measurement.recording.redaction import redacted
from paceline.measurement.recording.trials import trial_variables
from paceline.measurement.run_job import interrupted, launch_directory
from paceline.store import Launch, Outcome, Status, Store
from paceline.store.database import now
from paceline.store.launch import new_launch_id
from paceline.store.rows import OWNER_ENDED

NEVER_STEPPED = (
    "no process stepped a torch optimizer, and the output has no step times; mark the end of each "
    "step with one line in the script: __import__('paceline_watch').mark()"
)


@dataclass(frozen=True)
class RunRequest:
    """Command to run and known facts; ``program`` names a log reader.

    ``with_layers`` times single layers, which has more overhead than steps. The recorded command
    has no passwords, tokens and keys, unless ``keep_secrets``.
    """

    command: tuple[str, ...]
    given: UserFacts
    study: str
    program: str | None = None
    with_layers: bool = False
    warmup_steps: int = 3
    timeout_seconds: float | None = None
    variables: Mapping[str, str] | None = None
    keep_secrets: bool = False
    trials: Mapping[str, float] = field(default_factory=dict)


def run_watched(
    request: RunRequest,
    store: Store,
    stdout: IO[bytes] | None = None,
    stderr: IO[bytes] | None = None,
) -> Launch:
    """Run the command and record the launch; a failure is recorded, not raised.

    Output of the command is copied to ``stdout`` and ``stderr`` if given. Steps come from the
    watched processes, otherwise from the log of the command. The numbers of processes and samples
    are known, and recorded, at the end only.
    """
    readers()  # raises an error for an invalid reader before the command runs
    if request.program is not None:
        reader_named(request.program)
    with held_interrupts():  # a second signal must not cut the record short
        return _run_and_record(request, store, stdout, stderr)


def _run_and_record(
    request: RunRequest, store: Store, stdout: IO[bytes] | None, stderr: IO[bytes] | None
) -> Launch:
    close_abandoned(store)
    launch = _begun(request)
    store.start(launch)
    directory = launch_directory(store, launch.id)
    variables = {
        **watching_environment(directory, request.with_layers),
        **(request.variables or {}),
        **trial_variables(request.trials),
    }
    finished, kills, others = launch, memory_kills(), OtherPrograms()
    try:
        exited = run_command(
            request.command, directory, variables, request.timeout_seconds, stdout, stderr
        )
        finished = _finished(launch, request, directory, exited, others.busy_cores())
        reason = with_memory_kill(finished.outcome.reason, kills)
        finished = replace(finished, outcome=replace(finished.outcome, reason=reason))
    except KeyboardInterrupt as error:
        finished = _interrupted(launch, request, directory, error)
        raise
    except PacelineError as error:
        finished = replace(launch, outcome=Outcome(Status.FAILED, now(), error.message))
        raise
    finally:
        store.complete(finished)
    return finished


def close_abandoned(store: Store) -> None:
    """Record the outcome of launches whose owner was killed, with their steps so far."""
    for launch in store.abandoned():
        directory = store.path.parent / "launches" / launch.id
        job = watched_job(read_processes(directory)) if "command" in launch.job else None
        if job is not None:
            given = UserFacts(launch.model, batch_per_rank=launch.job.get("batch_told"))
            launch = launch_of_job(job, launch, given, launch.warmup_steps, {})
        outcome = replace(
            launch.outcome, status=Status.INTERRUPTED, ended_at=now(), reason=OWNER_ENDED
        )
        store.complete(replace(launch, outcome=outcome))


def launch_of_job(
    job: WatchedJob,
    launch: Launch,
    given: UserFacts,
    warmup_steps: int,
    facts: Mapping[str, Any],
    ended_well: bool = False,
) -> Launch:
    """``launch`` completed with the records of its watched processes.

    ``ended_well`` means that the command succeeded: a process without an end in its record exited
    by itself.
    """
    steps = len(job.kept)
    warmup = min(warmup_steps, max(0, steps // 4))
    samples = given.batch_per_rank or job.given_batch or job.samples
    notes = list(job.notes)
    if not samples:
        notes.append("samples per step are unknown (give --batch): each step counts as one sample")
    failure = next((p.failure for p in job.ranks if p.failure), "") or job.missing
    cut = ", ".join(str(process.rank) for process in job.ranks if not process.ended)
    if cut and ended_well:
        notes.append(f"rank {cut} exited without closing its record: its last steps may be missing")
    elif cut and not failure:
        failure = f"rank {cut} was killed before it could finish its record"
    first = job.ranks[0]
    profile, states = job.profile(warmup), job.states(warmup)
    outcome = Outcome(
        Status.FAILED if failure or not steps else Status.FINISHED,
        now(),
        failure or ("" if steps else "no step was completed by every rank"),
        ranks=job.rank_steps(),
        layers=first.layers,
        timeline=job.median_step(warmup),
        facts={
            **facts,
            "versions": first.versions,
            "memory": [process.memory for process in job.ranks],
            "cores": [list(process.cores) for process in job.ranks],
            "samples": [process.usual_samples for process in job.ranks],
            "elements": [process.usual_elements for process in job.ranks],
            "loader_workers": [process.loader_workers for process in job.ranks],
            "message_delay_seconds": [process.message_delay_seconds for process in job.ranks],
            "collection_seconds": job.collection_seconds(warmup),
            "synchronised_backwards": job.synchronised_backwards,
            "profile": None if profile is None else profile.to_json(),
            "states": None if states is None else states.to_json(),
            "core_use": [p.core_use and asdict(p.core_use) for p in job.ranks],
            "buckets": [[size, list(tensors)] for size, tensors in first.buckets],
            "ddp": dict(first.ddp),
            "collectives": job.collectives(warmup),
            "notes": notes,
        },
    )
    return replace(
        launch,
        framework="torch" if "torch" in first.versions else "python",
        model=given.model or job.given_model or launch.model,
        world_size=given.ranks or job.world,
        batch_per_rank=samples or 1,
        warmup_steps=warmup,
        outcome=outcome,
    )


def _begun(request: RunRequest) -> Launch:
    given = request.given
    command = list(request.command) if request.keep_secrets else redacted(request.command)
    return Launch(
        id=new_launch_id(),
        study=request.study,
        created_at=now(),
        framework=request.program or "command",
        model=given.model or script_name(request.command),
        world_size=given.ranks or 1,
        nodes=given.nodes or 1,
        batch_per_rank=given.batch_per_rank or 1,
        precision=given.precision or "unknown",
        instrument="layers" if request.with_layers else "none",
        synchronised=True,
        warmup_steps=request.warmup_steps,
        job=_job_of(request, command),
        environment=describe_environment(),
        outcome=Outcome(Status.RUNNING, ""),
    )


def _job_of(request: RunRequest, command: list[str]) -> dict[str, Any]:
    """The recorded command, and the remedies that are tried as a factor of the study."""
    tried = ", ".join(f"{name}={value:g}" for name, value in request.trials.items())
    return {
        "command": command,
        "batch_told": request.given.batch_per_rank,
        **({"factors": {"try": tried}} if tried else {}),
    }


def _finished(
    launch: Launch, request: RunRequest, directory: Path, exited: LaunchExit, other_cores: float
) -> Launch:
    facts = {
        "other_busy_cores": other_cores,
        "exit_codes": [rank.code for rank in exited.ranks],
        "seconds": exited.seconds,
        "load_before": launch.environment["load_average"],
        "load_after": load_average(),
        "directory": directory.name,
    }
    processes = read_processes(directory)
    job = None if request.program else watched_job(processes)
    if job is not None:
        watched = launch_of_job(
            job, launch, request.given, request.warmup_steps, facts, not exited.reason
        )
        return _with_exit(watched, exited)
    from_log = _launch_of_output(launch, request, directory / LOG_NAME, facts)
    if from_log is not None:
        return _with_exit(from_log, exited)
    failure = next((process.failure for process in processes if process.failure), "")
    reason = failure or _exit_of_command(exited) or NEVER_STEPPED
    return replace(launch, outcome=Outcome(Status.FAILED, now(), reason, facts=facts))


def _interrupted(
    launch: Launch, request: RunRequest, directory: Path, error: KeyboardInterrupt
) -> Launch:
    job = watched_job(read_processes(directory))
    if job is not None:
        launch = launch_of_job(job, launch, request.given, request.warmup_steps, {})
    end = interrupted(error)
    outcome = replace(launch.outcome, status=end.status, ended_at=end.ended_at, reason=end.reason)
    return replace(launch, outcome=outcome)


def _launch_of_output(
    launch: Launch, request: RunRequest, log: Path, facts: Mapping[str, Any]
) -> Launch | None:
    """The launch from the output of the command; None if its format is unknown."""
    try:
        read = launch_of_log(read_log(log, request.program), log, request.study, request.given)
    except InputError:
        if request.program is None:
            return None
        raise
    return replace(
        read,
        id=launch.id,
        created_at=launch.created_at,
        model=request.given.model or (read.model if read.model != "unknown" else launch.model),
        job={**read.job, **launch.job},
        environment=launch.environment,
        outcome=replace(read.outcome, facts={**read.outcome.facts, **facts}),
        provenance="measured",
    )


def _with_exit(launch: Launch, exited: LaunchExit) -> Launch:
    """Mark a launch as failed if its command failed after its steps, which are kept.

    The exit of the command explains more than an unclosed record, and an exception more than that.
    """
    known = (
        launch.status is not Status.FINISHED and "finish its record" not in launch.outcome.reason
    )
    if not exited.reason or known:
        return launch
    reason = _exit_of_command(exited)
    return replace(launch, outcome=replace(launch.outcome, status=Status.FAILED, reason=reason))


def _exit_of_command(exited: LaunchExit) -> str:
    """Exit of the command, which the launcher reports as rank 0."""
    return exited.reason.replace("rank 0", "the command")


def script_name(command: Sequence[str]) -> str:
    """Name of the script in a command: the default name of its model."""
    scripts = [Path(part).stem for part in command if part.endswith(".py")]
    return scripts[0] if scripts else Path(command[0]).name
