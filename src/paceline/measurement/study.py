"""A study: which jobs, how often, in what random order; run now, or continued after a crash."""

import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from paceline.errors import InputError
from paceline.measurement.job import Job, Optimiser
from paceline.measurement.run import DEFAULT_TIMEOUT_SECONDS, run_job
from paceline.measurement.watch.launches import close_abandoned
from paceline.store import Launch, Status, Store

MOST_LAUNCHES = 100_000
SETTLED = (Status.FINISHED, Status.FAILED)


@dataclass(frozen=True)
class Design:
    """Jobs and the order in which their launches run.

    ``order`` holds one index into ``jobs`` per launch: complete blocks, each with every job once,
    shuffled within the block, so that a slow drift of the machine falls on all jobs alike.
    ``parity`` says whether the frameworks of a comparison train the same, as JSON values.
    """

    jobs: tuple[Job, ...]
    order: tuple[int, ...]
    seed: int
    parity: dict[str, Any] | None = None

    @classmethod
    def randomised(cls, jobs: Sequence[Job], launches: int | Sequence[int], seed: int) -> "Design":
        """Each job ``launches`` times (or each its own number), in shuffled blocks."""
        counts = [launches] * len(jobs) if isinstance(launches, int) else list(launches)
        if not jobs or min(counts) < 1:
            raise InputError("a study needs a job and a launch", "give --launches 1 or more")
        if sum(counts) > MOST_LAUNCHES:
            raise InputError(
                f"a study of {sum(counts):,} launches never ends", f"at most {MOST_LAUNCHES:,}"
            )
        shuffle = random.Random(seed)
        order: list[int] = []
        for block in range(max(counts)):
            members = [index for index, count in enumerate(counts) if block < count]
            shuffle.shuffle(members)
            order.extend(members)
        return cls(tuple(jobs), tuple(order), seed)

    def to_json(self) -> dict[str, Any]:
        """The design as JSON values."""
        return {
            "jobs": [_plain(job) for job in self.jobs],
            "order": list(self.order),
            "seed": self.seed,
            "parity": self.parity,
        }

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> "Design":
        """The design that `to_json` wrote."""
        jobs = tuple(
            Job(
                **{
                    **fields,
                    "optimiser": Optimiser(**fields["optimiser"]),
                    "hosts": tuple(fields.get("hosts", ())),
                    "launcher_options": tuple(fields.get("launcher_options", ())),
                }
            )
            for fields in document["jobs"]
        )
        return cls(jobs, tuple(document["order"]), document["seed"], document.get("parity"))


def _plain(job: Job) -> dict[str, Any]:
    """The fields of a job as JSON has them, which knows no tuples."""
    return {
        **asdict(job),
        "hosts": list(job.hosts),
        "launcher_options": list(job.launcher_options),
    }


@dataclass(frozen=True)
class Progress:
    """Where a study stands: launches done of all, the one about to run, seconds each took."""

    done: int
    total: int
    job: Job
    seconds_so_far: tuple[float, ...]


def run_study(
    store: Store,
    study: str,
    design: Design | None = None,
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    port: int | None = None,
    on_launch: Callable[[Progress], None] = lambda progress: None,
) -> list[Launch]:
    """Run a new study, or, without a ``design``, what is left of one begun earlier.

    A position of the order is settled once a launch of it finished or failed; one that was
    interrupted runs again. Returns every launch of the study. Another process that runs the same
    study is an error.
    """
    with store.held_study(study):
        return _run_alone(store, study, design, timeout_seconds, port, on_launch)


def _run_alone(
    store: Store,
    study: str,
    design: Design | None,
    timeout_seconds: float,
    port: int | None,
    on_launch: Callable[[Progress], None],
) -> list[Launch]:
    close_abandoned(store)
    if design is None:
        design = _stored_design(store, study)
    elif store.design(study) is not None or store.count(study):
        raise InputError(
            f"there is a study named '{study}' already",
            f"'paceline measure --resume {study}' continues one that was measured; "
            "or choose another name",
        )
    else:
        store.save_design(study, design.to_json())
    settled = settled_positions(store, study)
    seconds = [launch.outcome.facts.get("seconds", 0.0) for launch in settled.values()]
    for position, index in enumerate(design.order):
        if position in settled:
            continue
        job = design.jobs[index]
        on_launch(Progress(len(settled), len(design.order), job, tuple(seconds)))
        launch = run_job(job, store, study, timeout_seconds, port, position)
        settled[position] = launch
        seconds.append(launch.outcome.facts.get("seconds", 0.0))
    return store.launches(study)


def _stored_design(store: Store, study: str) -> Design:
    document = store.design(study)
    if document is None:
        raise store.no_study(study)
    return Design.from_json(document)


def settled_positions(store: Store, study: str) -> dict[int, Launch]:
    """Launches by the position that they settled; those of ``run`` and ``import`` have none."""
    return {
        launch.job["position"]: launch
        for launch in store.launches(study)
        if launch.status in SETTLED and "position" in launch.job
    }
