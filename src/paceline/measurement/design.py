"""What a study sets out to do: jobs, the order of their launches, and when they suffice."""

import hashlib
import json
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from paceline.errors import InputError
from paceline.measurement.job import Job, Optimiser
from paceline.statistics.stopping import StoppingRule

MOST_LAUNCHES = 100_000


@dataclass(frozen=True)
class Design:
    """Jobs and the order in which their launches run.

    ``order`` holds one index into ``jobs`` per launch: complete blocks, each with every job once,
    shuffled within the block, so that a slow drift of the machine falls on all jobs alike.
    ``parity`` says whether the frameworks of a comparison train the same, as JSON values. With
    ``stopping``, blocks of those that need more follow, as long as all launches together took
    less than ``most_seconds``. A launch may take ``launch_seconds``. With ``detect_warmup`` the
    steps before a launch is steady are not counted. ``accuracy`` has the ``target`` and the
    ``margin`` of studies that train to one; ``node_price`` is that of a node for an hour.
    """

    jobs: tuple[Job, ...]
    order: tuple[int, ...]
    seed: int
    parity: dict[str, Any] | None = None
    stopping: StoppingRule | None = None
    most_seconds: float | None = None
    launch_seconds: float | None = None
    detect_warmup: bool = False
    accuracy: dict[str, Any] | None = None
    node_price: float | None = None

    @classmethod
    def randomised(
        cls, jobs: Sequence[Job], launches: int | Sequence[int], seed: int, block_by: str = ""
    ) -> "Design":
        """Each job ``launches`` times (or each its own number), in shuffled blocks.

        With ``block_by``, a factor, jobs of one of its levels follow each other within a block.
        """
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
            if block_by:
                levels = list(dict.fromkeys(jobs[index].factors.get(block_by) for index in members))
                members.sort(key=lambda one: levels.index(jobs[one].factors.get(block_by)))
            order.extend(members)
        return cls(tuple(jobs), tuple(order), seed)

    def further_block(self, number: int, members: Sequence[int]) -> list[int]:
        """The order of a block that a stopping rule adds, the same whenever it is asked for."""
        shuffled = sorted(members)
        random.Random(f"{self.seed}/{number}").shuffle(shuffled)
        return shuffled

    def to_json(self) -> dict[str, Any]:
        """The design as JSON values."""
        return {
            "jobs": [_plain(job) for job in self.jobs],
            "order": list(self.order),
            "seed": self.seed,
            "parity": self.parity,
            "stopping": None if self.stopping is None else asdict(self.stopping),
            "most_seconds": self.most_seconds,
            "launch_seconds": self.launch_seconds,
            "detect_warmup": self.detect_warmup,
            "accuracy": self.accuracy,
            "node_price": self.node_price,
        }

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> "Design":
        """The design that `to_json` wrote, of this version or an earlier one."""
        stopping = document.get("stopping")
        return cls(
            tuple(map(job_from_json, document["jobs"])),
            tuple(document["order"]),
            document["seed"],
            document.get("parity"),
            None if stopping is None else StoppingRule(**stopping),
            document.get("most_seconds"),
            document.get("launch_seconds"),
            bool(document.get("detect_warmup", False)),
            document.get("accuracy"),
            document.get("node_price"),
        )


_LISTS = ("hosts", "launcher_options")
_JOB_FIELDS = frozenset(one.name for one in fields(Job))


def job_from_json(document: dict[str, Any]) -> Job:
    """The job that a design or a launch recorded; what else is recorded with it is left out."""
    known = {key: value for key, value in document.items() if key in _JOB_FIELDS}
    known |= {key: tuple(known[key]) for key in _LISTS if key in known}
    return Job(**{**known, "optimiser": Optimiser(**known.get("optimiser", {}))})


def _plain(job: Job) -> dict[str, Any]:
    """The fields of a job as JSON has them, which knows no tuples."""
    return {**asdict(job), **{key: list(getattr(job, key)) for key in _LISTS}}


class JobDigests:
    """Digests of jobs: two have one digest if they ask for the same.

    Launches of a network share its graph, which is read through once.
    """

    def __init__(self) -> None:
        self._graphs: dict[int, tuple[Any, str]] = {}

    def of(self, job: Job) -> str:
        """The digest of a job."""
        others = {name: getattr(job, name) for name in _JOB_FIELDS if name != "graph"}
        return _digest({**others, "optimiser": asdict(job.optimiser), "graph": self._graph(job)})

    def _graph(self, job: Job) -> str:
        if id(job.graph) not in self._graphs:
            self._graphs[id(job.graph)] = (job.graph, _digest(job.graph))
        return self._graphs[id(job.graph)][1]


def _digest(document: Any) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
