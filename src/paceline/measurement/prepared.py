"""Studies that are written to a directory, run there by somebody else, and collected."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paceline.errors import InputError
from paceline.frameworks.command import RUNTIME, search_path, worker_command
from paceline.frameworks.registry import framework
from paceline.json_checks import parsed_json
from paceline.launch import Launcher, LaunchExit, LaunchRequest
from paceline.launch.documents import collected_exit
from paceline.launch.onhost.agent import STUDY
from paceline.launch.prepared import PreparedLaunch, launch_name
from paceline.launch.sending import WORKERS, copy_folder, moved_words
from paceline.measurement.design import Design
from paceline.measurement.environment import describe_environment
from paceline.measurement.job import Job
from paceline.measurement.run import (
    events_path,
    launch_directory,
    launcher_for,
    new_launch,
    new_launch_id,
    outcome_of,
    thread_variables,
    write_job,
)
from paceline.measurement.steady import with_found_warmup
from paceline.store import Launch, Store

SCHEMA = "paceline/prepared/1"
FILE = "study.json"


def prepare_study(
    design: Design, study: str, directory: Path, timeout_seconds: float
) -> tuple[list[Path], int]:
    """Write every launch of a study, and the scripts that start them; nothing is started.

    Workers are copied too, so that the directory can be moved to machines without Paceline. Returns
    the scripts, and the number of launches.
    """
    if directory.exists() and any(directory.iterdir()):
        raise InputError(f"{directory} is not empty", "name a new directory")
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make {directory}: {error}", "name another directory") from error
    directory = directory.resolve()
    launches: list[PreparedLaunch] = []
    starter: Launcher | None = None
    for number, index in enumerate(design.order):
        job = design.jobs[index]
        starter = launcher_for(framework(job.framework), job)
        replicate = design.order[:number].count(index)
        request = _request(job, directory, number, replicate, timeout_seconds)
        commands = tuple(tuple(words) for words in starter.prepare(request))
        launches.append(PreparedLaunch(number, request, commands))
    assert starter is not None, "a design has launches"
    write_job(directory / FILE, {"schema": SCHEMA, "study": study, "design": design.to_json()})
    return starter.write_study(directory, launches), len(launches)


def collect_study(directory: Path, store: Store) -> tuple[str, list[Launch], int]:
    """Record the launches of a prepared study that have run and are not recorded yet.

    Returns the study, what was recorded now, and how many launches have not run.
    """
    study, design = _read(directory)
    known = store.design(study)
    if known is None and not store.count(study):
        store.save_design(study, design.to_json())
    elif {**(known or {}), "ended": None} != {**design.to_json(), "ended": None}:
        raise InputError(
            f"there is another study named '{study}' already",
            "collect into another store: --store other.db",
        )
    settled = {launch.job.get("position") for launch in store.launches(study)}
    recorded, waiting = [], 0
    for position, index in enumerate(design.order):
        if position in settled:
            continue
        place, job = directory / launch_name(position), design.jobs[index]
        exited = collected_exit(place, job.world_size)
        if exited is None:
            waiting += 1
            continue
        marks = {"position": position, "replicate": design.order[:position].count(index)}
        launch = _record(job, store, study, marks, place, exited)
        if design.detect_warmup:
            store.complete(with_found_warmup(launch))
        recorded.append(store.launch(launch.id))
    return study, recorded, waiting


def _request(
    job: Job, directory: Path, number: int, replicate: int, timeout_seconds: float
) -> LaunchRequest:
    place = directory / launch_name(number)
    place.mkdir()
    write_job(place / "job.json", job.for_worker(replicate))
    chosen = framework(job.framework)
    command = worker_command(chosen, place)
    moved = _copied_workers([*search_path(chosen), RUNTIME], directory)
    words = [moved_words(word, moved) for word in command.arguments]
    variables = {name: moved_words(value, moved) for name, value in command.variables.items()}
    here = f"{STUDY}/{place.name}"
    return LaunchRequest(
        lambda rank: (*words, f"{here}/job.json", f"{here}/{events_path(place, rank).name}"),
        place,
        timeout_seconds,
        job.nodes,
        job.world_size // job.nodes,
        lambda rank: {**thread_variables(job.threads), **variables},
        cores_per_rank=job.threads if job.device == "cpu" else None,
    )


def _copied_workers(folders: list[Path], directory: Path) -> dict[str, str]:
    """Where each folder of workers is in the study; copied there once."""
    moved = {}
    for folder in dict.fromkeys(folders):
        target = directory / WORKERS / folder.name
        if not target.exists():
            copy_folder(folder, target)
        moved[str(folder)] = f"{STUDY}/{WORKERS}/{folder.name}"
    return moved


def _read(directory: Path) -> tuple[str, Design]:
    try:
        document: Any = parsed_json((directory / FILE).read_text(encoding="utf-8"))
        if document["schema"] != SCHEMA:
            raise ValueError(f"schema {document['schema']}")
        return str(document["study"]), Design.from_json(document["design"])
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise InputError(
            f"{directory} is no prepared study: {error}",
            "'paceline measure --dry-run DIRECTORY' prepares one",
        ) from error


def _record(
    job: Job,
    store: Store,
    study: str,
    marks: Mapping[str, Any],
    place: Path,
    exited: LaunchExit,
) -> Launch:
    """Keep a launch and its files beside the store, as if it had been run from here."""
    launch_id = new_launch_id()
    own = launch_directory(store, launch_id)
    for path in place.iterdir():
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
