"""What a study varies and how often: the values that a person chooses, from Python or TOML."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paceline.errors import InputError
from paceline.located_toml import read_toml
from paceline.naming import look_up
from paceline.places import Place, as_places, parse_counts

if TYPE_CHECKING:
    from paceline.measurement.job import Job
    from paceline.measurement.study import Design
    from paceline.workload.graph import Graph

EXAMPLES: dict[str, Any] = {"seq": 128, "bucket_bytes": 25e6}
"""Values of the settings that may be left out."""

MAY_BE_EMPTY = ("hosts", "launcher_options", "labs")

ORDERS = ("random", "given")
"""Blocks with every configuration once: shuffled, or in the order of the settings."""


@dataclass(frozen=True)
class StudySettings:
    """One network on several numbers of processes, under one or several frameworks.

    ``batch`` counts samples per process (``scaling`` "weak") or of all processes together
    ("strong"). ``processes`` are places: nodes, and processes on each. ``launches`` is how often
    each configuration starts afresh, or one number per configuration; ``steps`` of a launch are
    counted, after ``warmup_steps`` that are timed but not counted. ``instruments`` are kinds of
    launches: none (throughput), phases, layers. With ``no_sync`` several processes also run
    co-located without communication. ``seq`` is tokens per sample, ``bucket_bytes`` DDP's bucket
    size. ``threads`` of each process are its cores too, one number or several to compare.
    ``seed`` is of the launch order, the initial weights and the data. ``launcher`` starts the
    processes; unless named, the one that the framework needs, else this machine's own; on
    ``hosts`` (one may be named more than once), with ``launcher_options`` such as
    "partition=debug". With ``oversubscribe`` processes may be more than there are cores.
    ``emulate`` names a device of the catalogue whose computing is slept, as long as predicted
    times ``time_scale``. ``labs`` are settings of labs such as
    "link=1gbit+delay=200us+speed=0.5", each with launches of its own.
    """

    model: str = "resnet44"
    batch: int = 64
    processes: tuple[Place, ...] = ((1, 1),)
    frameworks: tuple[str, ...] = ("torch-ddp",)
    launches: int = 3
    steps: int = 10
    warmup_steps: int = 3
    seed: int = 1
    order: str = "random"
    scaling: str = "weak"
    seq: int | None = None
    precision: str = "fp32"
    threads: tuple[int, ...] = (1,)
    instruments: tuple[str, ...] = ("none",)
    no_sync: bool = False
    bucket_bytes: float | None = None
    launcher: str = ""
    hosts: tuple[str, ...] = ()
    launcher_options: tuple[str, ...] = ()
    oversubscribe: bool = False
    emulate: str = ""
    time_scale: float = 1.0
    labs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        look_up("order", self.order, dict.fromkeys(ORDERS), f"one of {', '.join(ORDERS)}")

    @classmethod
    def of(cls, source: str = "the study", **values: Any) -> "StudySettings":
        """Settings as people write them: names by commas or in a list, processes as numbers.

        ``processes`` may be 2, "1x1,1x2" or [1, 2, "2x4"]. ``source`` names where the values are
        from in errors.
        """
        known = {field.name: field.default for field in fields(cls)}
        for key, value in values.items():
            default = look_up(f"setting of {source}", key, known, f"one of {', '.join(known)}")
            if key == "processes":
                values[key] = as_places(value)
            elif key == "threads":
                values[key] = _thread_counts(value)
            elif isinstance(default, tuple):
                values[key] = _names(key, value, key != "hosts")
            elif not _is_like(value, EXAMPLES.get(key, default), key in EXAMPLES):
                example = EXAMPLES.get(key, default)
                raise InputError(
                    f"{source}: {key} is {value!r}, not of the kind of {example!r}",
                    f"write {key} = {example!r}".replace("'", '"'),
                )
        return cls(**values)

    @classmethod
    def read(cls, path: Path | str, **others: Any) -> "StudySettings":
        """Settings of a TOML file whose keys are the fields of this class; ``others`` go first."""
        return cls.of(str(path), **{**read_toml(Path(path)).values, **others})

    def jobs(self, run_here: bool = True) -> "Iterator[Job]":
        """Every configuration as a job; what cannot run is refused before anything starts.

        Of jobs that are not to ``run_here`` it is not asked whether launcher and room are there.
        """
        from paceline.frameworks.command import check_runnable
        from paceline.frameworks.registry import framework
        from paceline.measurement.job import Job, batch_per_rank
        from paceline.measurement.room import check_room
        from paceline.measurement.run import launcher_for
        from paceline.workload import zoo

        graph = zoo.build(self.model)
        if self.seq is not None and not graph.uses_sequence:
            raise InputError(f"{graph.name} has no sequence", "leave --seq out")
        description = graph.to_json()
        for name in self.frameworks:
            chosen = framework(name)
            check_runnable(chosen)
            if not chosen.claims(description):
                raise InputError(
                    f"the worker of {name} cannot build {graph.name}",
                    "PyTorch's workers build every network: --framework torch-ddp",
                )
            for (nodes, each), threads, instrument, synchronise in self._kinds():
                processes = nodes * each
                job = Job(
                    model=graph.name,
                    graph=description,
                    framework=name,
                    batch_per_rank=batch_per_rank(self.batch, processes, self.scaling),
                    world_size=processes,
                    nodes=nodes,
                    launcher=self.launcher,
                    hosts=self.hosts,
                    launcher_options=self.launcher_options,
                    precision=self.precision,
                    steps=self.steps,
                    warmup_steps=self.warmup_steps,
                    instrument=instrument,
                    synchronise=synchronise,
                    bucket_bytes=self.bucket_bytes,
                    threads=threads,
                    seed=self.seed,
                    sequence=self.seq or graph.sequence,
                )
                for variant in self._in_labs(self._asleep(job, graph)):
                    starter = launcher_for(chosen, variant)
                    if run_here:
                        starter.validate(nodes, each)
                        check_room(variant, graph, starter, self.oversubscribe)
                    yield variant

    def _asleep(self, job: "Job", graph: "Graph") -> "Job":
        """The job on the device that is emulated, where one is."""
        if not self.emulate:
            if self.time_scale != 1:
                raise InputError(
                    "a time scale is of an emulated device", "name one: --emulate v100"
                )
            return job
        from paceline.analyse.emulation import emulated_device, emulated_job
        from paceline.hardware import catalogue
        from paceline.workload.workload import Workload

        trained = Workload(graph, job.batch_per_rank, job.sequence, job.precision)
        device = emulated_device(catalogue.device(self.emulate), trained, job.framework)
        return emulated_job(job, device.slower(self.time_scale))

    def _in_labs(self, job: "Job") -> "Iterator[Job]":
        """The job in each lab, or as it is where none is asked for."""
        if not self.labs:
            yield job
        elif self.launcher not in ("", "lab"):
            raise InputError(
                f"labs are of the launcher 'lab', not of '{self.launcher}'", "leave --launcher out"
            )
        for lab in self.labs:
            options = tuple(part.strip() for part in lab.split("+"))
            if self.emulate and any(option.startswith("speed") for option in options):
                raise InputError(
                    "the speed of a host limits computing, and an emulated device sleeps",
                    "leave speed out of --lab; another device is slower: --emulate k80",
                )
            yield replace(job, launcher="lab", launcher_options=options)

    def design(self, run_here: bool = True) -> "Design":
        """The jobs, and the order in which their launches run."""
        from paceline.measurement.study import Design

        jobs = list(self.jobs(run_here))
        if self.order == "random":
            return Design.randomised(jobs, self.launches, self.seed)
        shuffled = Design.randomised(jobs, self.launches, self.seed)
        return replace(shuffled, order=tuple(range(len(jobs))) * self.launches)

    def _kinds(self) -> Iterator[tuple[Place, int, str, bool]]:
        """Place, threads, instrument and whether processes synchronise, of every job."""
        for place, threads, instrument in product(self.processes, self.threads, self.instruments):
            yield place, threads, instrument, True
            if self.no_sync and place != (1, 1):
                yield place, threads, instrument, False


def _is_like(value: Any, example: Any, may_be_none: bool) -> bool:
    """Whether a value is of the kind of an example; a whole number is one in floating point."""
    if value is None:
        return may_be_none
    if isinstance(example, float) and type(value) in (int, float):
        return bool(abs(value) < 1e18)  # which NaN is not either
    return type(value) is type(example) and (type(value) is not int or abs(value) < 2**63)


def _thread_counts(value: Any) -> tuple[int, ...]:
    """Threads of each process: ``2``, ``"1,2"`` or ``[1, 2]``."""
    if isinstance(value, str):
        return tuple(parse_counts(value, "threads", "--threads"))
    counts = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not counts or any(type(count) is not int or count < 1 for count in counts):
        raise InputError(f"threads of {value!r} are impossible", "write threads = 1 or [1, 2]")
    return tuple(dict.fromkeys(counts))


def _names(key: str, value: Any, each_once: bool = True) -> tuple[str, ...]:
    """Names of ``"a,b"`` or ``["a", "b"]``."""
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
        raise InputError(f"{key} of {value!r} are no names", f'write {key} = ["a", "b"]')
    names = tuple(part.strip() for part in parts if part.strip())
    names = tuple(dict.fromkeys(names)) if each_once else names
    if not names and key not in MAY_BE_EMPTY:
        raise InputError(f"no {key.removesuffix('s')} was named", f"write {key} by commas")
    return names
