"""A command of the user's, run, watched and recorded as a launch like any other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from paceline.errors import InputError, PacelineError
from paceline.interrupts import held_interrupts
from paceline.launch import LaunchExit
from paceline.measurement.environment import OtherPrograms, describe_environment, load_average
from paceline.measurement.failures import memory_kills, with_memory_kill
from paceline.measurement.imports import UserFacts, launch_of_log
from paceline.measurement.readers import read_log, reader_named, readers, sniff_log
from paceline.measurement.run import interrupted, launch_directory, new_launch_id
from paceline.measurement.watch.collect import WatchedJob, read_processes, watched_job
from paceline.measurement.watch.runner import LOG_NAME, run_command, watching_environment
from paceline.store import Launch, Outcome, Status, Store
from paceline.store.database import now
from paceline.store.rows import OWNER_ENDED

NEVER_STEPPED = "no process stepped an optimiser, and its output is no log that is known"


@dataclass(frozen=True)
class RunRequest:
    """What to run and what is known of it; ``program`` names a log reader.

    With ``with_layers`` single layers are timed, which costs more than watching steps.
    """

    command: tuple[str, ...]
    told: UserFacts
    study: str
    program: str | None = None
    with_layers: bool = False
    warmup_steps: int = 3
    timeout_seconds: float | None = None
    variables: Mapping[str, str] | None = None


def run_watched(request: RunRequest, store: Store, echo: bool = True) -> Launch:
    """Run the command and record the launch; a failure is recorded, not raised.

    Steps come from the processes that were watched, else from the command's log. How many
    processes and samples there are is known at the end only, and recorded then.
    """
    readers()  # one that cannot be used is told before anything runs
    if request.program is not None:
        reader_named(request.program)
    with held_interrupts():  # a second signal must not cut the record short
        return _run_and_record(request, store, echo)


def _run_and_record(request: RunRequest, store: Store, echo: bool) -> Launch:
    close_abandoned(store)
    launch = _begun(request)
    store.start(launch)
    directory = launch_directory(store, launch.id)
    variables = {
        **watching_environment(directory, request.with_layers),
        **(request.variables or {}),
    }
    finished, kills, others = launch, memory_kills(), OtherPrograms()
    try:
        exited = run_command(request.command, directory, variables, request.timeout_seconds, echo)
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
    """Give launches whose owner was killed their outcome, with the steps that they had taken."""
    for launch in store.abandoned():
        directory = store.path.parent / "launches" / launch.id
        job = watched_job(read_processes(directory)) if "command" in launch.job else None
        if job is not None:
            told = UserFacts(launch.model, batch_per_rank=launch.job.get("batch_told"))
            launch = launch_of_job(job, launch, told, launch.warmup_steps, {})
        outcome = replace(
            launch.outcome, status=Status.INTERRUPTED, ended_at=now(), reason=OWNER_ENDED
        )
        store.complete(replace(launch, outcome=outcome))


def launch_of_job(
    job: WatchedJob,
    launch: Launch,
    told: UserFacts,
    warmup_steps: int,
    facts: Mapping[str, Any],
    ended_well: bool = False,
) -> Launch:
    """``launch`` with everything that its watched processes tell.

    With ``ended_well`` the command is known to have ended as it should: a process without an
    end in its record left on its own accord.
    """
    steps = len(job.kept)
    warmup = min(warmup_steps, max(0, steps // 4))
    samples = told.batch_per_rank or job.told_batch or job.samples
    notes = list(job.notes)
    if not samples:
        notes.append("samples per step are not known (give --batch): each step counts as one")
    failure = next((p.failure for p in job.ranks if p.failure), "") or job.missing
    cut = ", ".join(str(process.rank) for process in job.ranks if not process.ended)
    if cut and ended_well:
        notes.append(f"rank {cut} left without closing its record: its last steps may be missing")
    elif cut and not failure:
        failure = f"rank {cut} was ended before it could finish its record"
    first = job.ranks[0]
    profile = job.profile(warmup)
    outcome = Outcome(
        Status.FAILED if failure or not steps else Status.FINISHED,
        now(),
        failure or ("" if steps else "no step was taken by every rank"),
        ranks=job.rank_steps(),
        layers=first.layers,
        timeline=job.median_step(warmup),
        facts={
            **facts,
            "versions": first.versions,
            "memory": [process.memory for process in job.ranks],
            "cores": [list(process.cores) for process in job.ranks],
            "samples": [process.usual_samples for process in job.ranks],
            "loader_workers": [process.loader_workers for process in job.ranks],
            "message_delay_seconds": [process.message_delay_seconds for process in job.ranks],
            "collection_seconds": job.collection_seconds(warmup),
            "synchronised_backwards": job.synchronised_backwards,
            "profile": None if profile is None else profile.to_json(),
            "notes": notes,
        },
    )
    return replace(
        launch,
        framework="torch" if "torch" in first.versions else "python",
        model=told.model or job.told_model or launch.model,
        world_size=told.ranks or job.world,
        batch_per_rank=samples or 1,
        warmup_steps=warmup,
        outcome=outcome,
    )


def _begun(request: RunRequest) -> Launch:
    told = request.told
    return Launch(
        id=new_launch_id(),
        study=request.study,
        created_at=now(),
        framework=request.program or "command",
        model=told.model or script_name(request.command),
        world_size=told.ranks or 1,
        nodes=told.nodes or 1,
        batch_per_rank=told.batch_per_rank or 1,
        precision=told.precision or "unknown",
        instrument="layers" if request.with_layers else "none",
        synchronised=True,
        warmup_steps=request.warmup_steps,
        job={"command": list(request.command), "batch_told": told.batch_per_rank},
        environment=describe_environment(),
        outcome=Outcome(Status.RUNNING, ""),
    )


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
            job, launch, request.told, request.warmup_steps, facts, not exited.reason
        )
        return _with_exit(watched, exited)
    from_log = _launch_of_output(launch, request, directory / LOG_NAME, facts)
    if from_log is not None:
        return _with_exit(from_log, exited)
    failure = next((process.failure for process in processes if process.failure), "")
    reason = failure or _command_words(exited) or NEVER_STEPPED
    return replace(launch, outcome=Outcome(Status.FAILED, now(), reason, facts=facts))


def _interrupted(
    launch: Launch, request: RunRequest, directory: Path, error: KeyboardInterrupt
) -> Launch:
    """The launch as far as it came before the user ended it."""
    job = watched_job(read_processes(directory))
    if job is not None:
        launch = launch_of_job(job, launch, request.told, request.warmup_steps, {})
    end = interrupted(error)
    outcome = replace(launch.outcome, status=end.status, ended_at=end.ended_at, reason=end.reason)
    return replace(launch, outcome=outcome)


def _launch_of_output(
    launch: Launch, request: RunRequest, log: Path, facts: Mapping[str, Any]
) -> Launch | None:
    """What the command's own output tells; None when it is no log that is known."""
    reader = reader_named(request.program) if request.program else sniff_log(log)
    if reader is None:
        return None
    try:
        read = launch_of_log(read_log(log, reader.name), log, request.study, request.told)
    except InputError:
        if request.program is None:
            return None
        raise
    return replace(
        read,
        id=launch.id,
        created_at=launch.created_at,
        model=request.told.model or (read.model if read.model != "unknown" else launch.model),
        job={**read.job, **launch.job},
        environment=launch.environment,
        outcome=replace(read.outcome, facts={**read.outcome.facts, **facts}),
        provenance="measured",
    )


def _with_exit(launch: Launch, exited: LaunchExit) -> Launch:
    """A command that ended badly after its steps is a failure, with its steps kept.

    What ended it says more than that a record was not closed; an exception says more still.
    """
    told = launch.status is not Status.FINISHED and "finish its record" not in launch.outcome.reason
    if not exited.reason or told:
        return launch
    reason = _command_words(exited)
    return replace(launch, outcome=replace(launch.outcome, status=Status.FAILED, reason=reason))


def _command_words(exited: LaunchExit) -> str:
    """How the command ended; to the launcher it is its only rank."""
    return exited.reason.replace("rank 0", "the command")


def script_name(command: Sequence[str]) -> str:
    """The name of the script in a command, for a model that nobody named."""
    scripts = [Path(part).stem for part in command if part.endswith(".py")]
    return scripts[0] if scripts else Path(command[0]).name
