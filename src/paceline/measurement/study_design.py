"""Design of a study: jobs, the order of their launches, and the stopping rule."""

import hashlib
import json
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from paceline.errors import InputError
from paceline.measurement.job import Job, Optimiser
from paceline.stats.stopping import StoppingRule
from paceline.store.rows import is_design, is_job

MOST_LAUNCHES = 100_000


@dataclass(frozen=True)
class Design:
    """Jobs and the order in which their launches run.

    ``order`` holds one index into ``jobs`` per launch: complete blocks, each with every job once,
    shuffled within the block, so that a slow drift of the machine affects all jobs equally.
    ``parity`` is the result of the parity check of a comparison, as JSON values. ``stopping`` adds
    blocks of the jobs that need more launches, while all launches together took less than
    ``most_seconds``. ``launch_seconds`` is the timeout of a launch. With ``detect_warmup`` the
    detected warm-up is not counted. ``accuracy`` has the ``target`` and the ``margin`` of studies
    that train by epochs; ``node_price`` is the price of a node per hour. ``order_kind`` is random,
    blocked (by the factor ``block_by`` within each block) or given.
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
    order_kind: str = "random"
    block_by: str = ""

    @classmethod
    def randomised(
        cls, jobs: Sequence[Job], launches: int | Sequence[int], seed: int, block_by: str = ""
    ) -> "Design":
        """Each job ``launches`` times (or one number per job), in shuffled blocks.

        With the factor ``block_by``, jobs with the same level follow each other within a block.
        """
        counts = [launches] * len(jobs) if isinstance(launches, int) else list(launches)
        if not jobs or min(counts) < 1:
            raise InputError("a study needs a job and a launch", "set --launches to 1 or more")
        if sum(counts) > MOST_LAUNCHES:
            raise InputError(
                f"too many launches: {sum(counts):,} (maximum {MOST_LAUNCHES:,})",
                "reduce --launches or the number of levels",
            )
        shuffle = random.Random(seed)
        order: list[int] = []
        for block in range(max(counts)):
            members = [index for index, count in enumerate(counts) if block < count]
            shuffle.shuffle(members)
            if block_by:
                levels = list(dict.fromkeys(jobs[index].factors.get(block_by) for index in members))
                members.sort(key=lambda member: levels.index(jobs[member].factors.get(block_by)))
            order.extend(members)
        kind = "blocked" if block_by else "random"
        return cls(tuple(jobs), tuple(order), seed, order_kind=kind, block_by=block_by)

    def further_block(self, number: int, members: Sequence[int]) -> list[int]:
        """Order of a block that a stopping rule adds; the same for equal arguments."""
        # Seeded by study and block, so that a resumed study continues in the same order.
        shuffled = sorted(members)
        random.Random(f"{self.seed}/{number}").shuffle(shuffled)
        return shuffled

    def to_json(self) -> dict[str, Any]:
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
            "order_kind": self.order_kind,
            "block_by": self.block_by,
        }

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> "Design":
        """Read a design written by `to_json` of this or an earlier version."""
        if not is_design(document) or not all(
            index < len(document["jobs"]) for index in document["order"]
        ):
            raise InputError("the design of the study is damaged", "measure the study again")
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
            document.get("order_kind", "random"),
            document.get("block_by", ""),
        )


_LISTS = ("hosts", "launcher_options")
_JOB_FIELDS = frozenset(field.name for field in fields(Job))


def job_from_json(document: dict[str, Any]) -> Job:
    """Read the job of a design or a launch; other recorded fields are ignored."""
    if not is_job(document):
        raise InputError("the recorded job is damaged", "measure its study again")
    known = {key: value for key, value in document.items() if key in _JOB_FIELDS}
    known |= {key: tuple(known[key]) for key in _LISTS if key in known}
    return Job(**{**known, "optimiser": Optimiser(**known.get("optimiser", {}))})


def _plain(job: Job) -> dict[str, Any]:
    """Fields of a job as JSON values: lists instead of tuples."""
    return {**asdict(job), **{key: list(getattr(job, key)) for key in _LISTS}}


class JobDigests:
    """Digests of jobs: two jobs with equal settings have the same digest.

    Launches of a network share its graph, whose digest is computed once.
    """

    def __init__(self) -> None:
        self._graphs: dict[int, tuple[Any, str]] = {}

    def of(self, job: Job) -> str:
        others = {name: getattr(job, name) for name in _JOB_FIELDS if name != "graph"}
        return _digest({**others, "optimiser": asdict(job.optimiser), "graph": self._graph(job)})

    def _graph(self, job: Job) -> str:
        if id(job.graph) not in self._graphs:
            self._graphs[id(job.graph)] = (job.graph, _digest(job.graph))
        return self._graphs[id(job.graph)][1]


def _digest(document: Any) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
