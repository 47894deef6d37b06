"""Studies written to a directory, run by other means (a batch system), and collected."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paceline.errors import InputError, PacelineError
from paceline.frameworks.command import RUNTIME, search_path, worker_command
from paceline.frameworks.framework_registry import framework
from paceline.json_checks import is_object, is_text, parsed_json, with_fields
from paceline.launch import Launcher, LaunchExit, LaunchRequest
from paceline.launch.file_transfer import WORKERS, copy_folder, relocate_arguments
from paceline.launch.launch_files import collected_exit
from paceline.launch.launch_script import PreparedLaunch, launch_name
from paceline.launch.launcher import refuse_control_characters
from paceline.launch.onhost.agent import STUDY
from paceline.measurement.environment import describe_environment
from paceline.measurement.job import Job
from paceline.measurement.run_job import (
    events_path,
    launch_directory,
    launcher_for,
    new_launch,
    outcome_of,
    thread_variables,
    write_job,
)
from paceline.measurement.study_design import Design
from paceline.measurement.warmup_detection import with_found_warmup
from paceline.store import Launch, Store
from paceline.store.launch import new_launch_id
from paceline.user_files import read_text

SCHEMA = "paceline/prepared/1"
FILE = "study.json"
LARGEST_BYTES = 1_000_000_000
"""Limit of `FILE`: 100,000 launches of jobs with graphs of 0.2 MB take less."""

_is_prepared = with_fields(
    {"schema": lambda value: value == SCHEMA, "study": is_text, "design": is_object}
)


def prepare_study(
    design: Design, study: str, directory: Path, timeout_seconds: float
) -> tuple[list[Path], int]:
    """Write every launch of a study and the scripts that start them, without starting them.

    Workers are copied too, so that the directory can be moved to machines without Paceline. Returns
    the scripts and the number of launches.
    """
    directory = Path(os.path.realpath(directory))  # resolve() raises for a loop of links
    refuse_control_characters("the directory of the study", str(directory))
    if directory.is_dir() and any(directory.iterdir()):
        raise InputError(f"{directory} is not empty", "choose a new directory")
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot create {directory}: {error}", "choose another directory"
        ) from error
    launches: list[PreparedLaunch] = []
    starter: Launcher | None = None
    for number, index in enumerate(design.order):
        job = design.jobs[index]
        starter = launcher_for(framework(job.framework), job)
        replicate = design.order[:number].count(index)
        request = _request(job, directory, number, replicate, timeout_seconds)
        commands = tuple(tuple(command) for command in starter.prepare(request))
        launches.append(PreparedLaunch(number, request, commands))
    assert starter is not None, "a design has launches"
    write_job(directory / FILE, {"schema": SCHEMA, "study": study, "design": design.to_json()})
    return starter.write_study(directory, launches), len(launches)


def collect_study(directory: Path, store: Store) -> tuple[str, list[Launch], int]:
    """Record the launches of a prepared study that have run and are not recorded yet.

    Returns the study, the launches recorded now, and the number of launches that have not run.
    """
    study, design = _read(directory)
    known = store.design(study)
    if known is None and not store.count(study):
        store.save_design(study, design.to_json())
    elif {**(known or {}), "ended": None} != {**design.to_json(), "ended": None}:
        raise InputError(
            f"the store has a different study named '{study}'",
            "collect into another store: --store other.db",
        )
    recorded_positions = {launch.job.get("position") for launch in store.launches(study)}
    recorded, waiting = [], 0
    for position, index in enumerate(design.order):
        if position in recorded_positions:
            continue
        folder, job = directory / launch_name(position), design.jobs[index]
        exited = collected_exit(folder, job.world_size)
        if exited is None:
            waiting += 1
            continue
        marks = {"position": position, "replicate": design.order[:position].count(index)}
        launch = _record(job, store, study, marks, folder, exited)
        if design.detect_warmup:
            store.complete(with_found_warmup(launch))
        recorded.append(store.launch(launch.id))
    return study, recorded, waiting


def _request(
    job: Job, directory: Path, number: int, replicate: int, timeout_seconds: float
) -> LaunchRequest:
    folder = directory / launch_name(number)
    folder.mkdir()
    write_job(folder / "job.json", job.for_worker(replicate))
    chosen = framework(job.framework)
    command = worker_command(chosen, folder)
    moved = _copied_workers([*search_path(chosen), RUNTIME], directory)
    arguments = [relocate_arguments(argument, moved) for argument in command.arguments]
    variables = {
        name: relocate_arguments(value, moved) for name, value in command.variables.items()
    }
    here = f"{STUDY}/{folder.name}"
    return LaunchRequest(
        lambda rank: (*arguments, f"{here}/job.json", f"{here}/{events_path(folder, rank).name}"),
        folder,
        timeout_seconds,
        job.nodes,
        job.world_size // job.nodes,
        lambda rank: {**thread_variables(job.threads), **variables},
        cores_per_rank=job.threads if job.device == "cpu" else None,
    )


def _copied_workers(folders: list[Path], directory: Path) -> dict[str, str]:
    """Path of each worker directory within the study, after copying it once."""
    moved = {}
    for folder in dict.fromkeys(folders):
        target = directory / WORKERS / folder.name
        if not target.exists():
            copy_folder(folder, target)
        moved[str(folder)] = f"{STUDY}/{WORKERS}/{folder.name}"
    return moved


def _read(directory: Path) -> tuple[str, Design]:
    try:
        document = parsed_json(read_text(directory / FILE, LARGEST_BYTES, "prepared study"))
        if not _is_prepared(document):
            raise InputError(f"{FILE} is damaged or of another version")
        return document["study"], Design.from_json(document["design"])
    except (PacelineError, ValueError) as error:
        raise InputError(
            f"{directory} is not a prepared study: {error}",
            "prepare one with 'paceline measure --dry-run DIRECTORY'",
        ) from None


def _record(
    job: Job,
    store: Store,
    study: str,
    marks: Mapping[str, Any],
    folder: Path,
    exited: LaunchExit,
) -> Launch:
    """Record a launch and copy its files next to the store, as `run_job` would have left them."""
    launch_id = new_launch_id()
    own = launch_directory(store, launch_id)
    for path in folder.iterdir():
        if path.is_file():
            shutil.copyfile(path, own / path.name)
    hosts = [rank.host for rank in exited.ranks]
    environment = {
        **describe_environment(),
        "launcher": job.launcher or "prepared",
        "hosts": list(dict.fromkeys(hosts)),
    }
    launch = new_launch(job, study, marks, launch_id, environment)
    store.start(launch)
    outcome = outcome_of(job, own, exited)
    store.finish(launch_id, outcome)
    return store.launch(launch_id)
