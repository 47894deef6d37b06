"""``paceline.record()``: three lines in a training script of any Python framework.

with paceline.record(model="mine", batch=32) as r:
    for batch in data:
        train(batch)
        r.step()
"""

import importlib.util
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from paceline.errors import InputError
from paceline.importers.import_launches import UserFacts
from paceline.measurement.environment import describe_environment
from paceline.measurement.recording.collect import (
    Lifetime,
    WatchedProcess,
    read_processes,
    watched_job,
)
from paceline.measurement.recording.recorded_launch import launch_of_job
from paceline.measurement.run_job import launch_directory
from paceline.store import Launch, Outcome, Status, Store, default_store_path
from paceline.store.database import now
from paceline.store.launch import new_launch_id

PEER_SECONDS = 10.0
PHASES = ("input", "backward", "update")

_JOB_VARIABLES = (
    "SLURM_JOB_ID",
    "SLURM_STEP_ID",
    "PMIX_NAMESPACE",
    "TORCHELASTIC_RUN_ID",
    "TORCHELASTIC_RESTART_COUNT",
    "MASTER_PORT",
)
"""Variables that identify a job. Another job may have had the same values: only processes that were
concurrent with rank 0 count."""


class Recording:
    """Records the steps of this process and its peers as one launch.

    Under ``paceline run`` the steps belong to the launch of the command. Otherwise rank 0 writes a
    launch to the store at the end of the block, with every rank that has finished by then.
    """

    def __init__(self, model: str, batch: int | None, study: str, store: Path | None) -> None:
        if batch is not None and batch < 1:
            raise InputError(f"invalid batch: {batch}", "give the number of samples per process")
        self._watch = _watch_module()
        self._given = UserFacts(model, batch)
        self._study = study or model or "recorded"
        self._store = store or default_store_path()
        self._recorder: Any = self._watch.active
        self._watched = self._recorder is not None
        began = self._watch.process_began()
        age = self._watch.since_boot() - began
        self._lifetime = Lifetime(self._watch.boot_name(), began, time.time() - age)

    def __enter__(self) -> "Recording":
        if self._recorder is None:
            self._recorder = self._watch.Recorder(str(self._shared_directory()))
        if self._watch.rank_and_world()[1] > 1:
            self._recorder.hello()  # rank 0 sees that this rank began, though it may never step
        if self._watched:
            self._recorder.write(
                "told", model=self._given.model, batch=self._given.batch_per_rank or 0
            )
        self._recorder.steps_by_hand = True
        self._recorder.begin(self._watch.clock())
        return self

    def step(self, samples: int = 0, loss: Any = None) -> None:
        """Mark the end of a training step; ``samples`` is the number of samples of this process.

        ``loss`` is a number or an object that ``float`` accepts, such as a tensor of one element.
        """
        self._recorder.samples += samples
        self._recorder.end_step(self._watch.clock(), loss)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Attribute the block to a phase: ``input``, ``backward`` or ``update``.

        Time before ``backward`` counts as forward.
        """
        if name not in PHASES:
            raise InputError(f"unknown phase '{name}'", f"one of {', '.join(PHASES)}")
        start = self._watch.clock()
        try:
            yield
        finally:
            self._recorder.segment(name, start, self._watch.clock())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None and error is not None and not self._watched:
            self._recorder.failed(kind, error, trace)
        if self._watched:
            self._recorder.flush()
            return
        self._recorder.close()
        rank, world = self._watch.rank_and_world()
        if rank == 0:
            self._record(world)

    def _record(self, world: int) -> None:
        processes = self._wait_for_peers(world)
        launch = Launch(
            id=new_launch_id(),
            study=self._study,
            created_at=now(),
            framework="python",
            model=self._given.model or Path(sys.argv[0]).stem or "recorded",
            world_size=world,
            nodes=1,
            batch_per_rank=self._given.batch_per_rank or 1,
            precision="unknown",
            instrument="none",
            synchronised=True,
            warmup_steps=0,
            job={"recorded": True},
            environment=describe_environment(),
            outcome=Outcome(
                Status.FAILED, now(), "no step was recorded: r.step() was never called"
            ),
        )
        job = watched_job(processes, all_nodes=True)
        if job is not None:
            launch = launch_of_job(job, launch, self._given, warmup_steps=3, facts={})
        with Store(self._store) as store:
            store.complete(launch)

    def _wait_for_peers(self, world: int) -> list[WatchedProcess]:
        deadline = time.monotonic() + (PEER_SECONDS if world > 1 else 0.0)
        while True:
            processes = read_processes(Path(self._recorder.directory), self._lifetime)
            done = [process for process in processes if process.ended or process.failure]
            if len(done) >= world or time.monotonic() > deadline:
                return processes
            time.sleep(0.05)

    def _shared_directory(self) -> Path:
        """Directory for the records of this job, the same for all ranks."""
        _, world = self._watch.rank_and_world()
        if world == 1:
            with Store(self._store) as store:
                return launch_directory(store, f"recorded-{new_launch_id()}")
        key = "-".join(os.environ[name] for name in _JOB_VARIABLES if name in os.environ)
        safe = "".join(letter if letter.isalnum() else "-" for letter in key) or "job"
        directory = self._store.parent / "launches" / f"recorded-{safe}"
        try:
            directory.parent.mkdir(parents=True, exist_ok=True)
            directory.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"cannot create {directory}: {error}", "choose a writable directory with store="
            ) from error
        return directory


def record(
    model: str = "", batch: int | None = None, study: str = "", store: Path | None = None
) -> Recording:
    """Record the training in a ``with`` block; call ``step()`` on the result after each step.

    ``batch`` is the number of samples per process and step unless given to ``step(samples=...)``.
    """
    return Recording(model, batch, study, store)


def _watch_module() -> ModuleType:
    """The watcher module that ``paceline run`` loaded into this process, or our own copy."""
    loaded = sys.modules.get("paceline_watch")
    if loaded is not None:
        return loaded
    _injected("paceline_watch_stacks")
    return _injected("paceline_watch")


def _injected(name: str) -> ModuleType:
    """Load a module of ``inject``, which is not part of the package."""
    path = Path(__file__).parent / "inject" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
