"""What a study varies and how often: the values that a person chooses, from Python or TOML."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paceline.errors import InputError
from paceline.naming import look_up
from paceline.places import Place, as_places, parse_counts
from paceline.statistics.designs import design_points
from paceline.statistics.stopping import StoppingRule
from paceline.study.factors import FACTORS, check_levels, settings_at
from paceline.study.training_data import (
    RATE_RULES,
    SYNTHETIC,
    data_source,
)

if TYPE_CHECKING:
    from paceline.measurement.job import Job
    from paceline.measurement.study import Design

EXAMPLES: dict[str, Any] = {
    "seq": 128,
    "bucket_bytes": 25e6,
    "half_width": 0.02,
    "most_seconds": 3600.0,
    "launch_seconds": 600.0,
    "memory_bytes": 8e9,
    "target_accuracy": 0.95,
    "node_price": 2.5,
}
"""Values of the settings that may be left out."""

ORDERS = {
    "random": "blocks with every configuration once, shuffled",
    "blocked": "the same, those of one level of block_by one after the other",
    "given": "blocks in the order of the settings",
}
WARM_UPS = ("fixed", "detect")
CHOICES = {
    "order": tuple(ORDERS),
    "warmup": WARM_UPS,
    "scaling": ("weak", "strong"),
    "learning_rate_rule": tuple(RATE_RULES),
}
MAY_BE_EMPTY = ("hosts", "launcher_options", "labs")


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

    ``factors`` are levels by name (`paceline.study.factors.FACTORS`) that a ``design`` combines
    (`paceline.statistics.designs.KINDS`); ``runs`` are the combinations of a design "list".
    ``warmup`` is "fixed", or "detect" for dropping what change points show, ``warmup_steps`` at
    the least. With ``half_width``, a part of the mean, launches are added until the interval is
    narrower, at most ``most_launches`` of a configuration and ``most_seconds`` in all. A launch
    may take ``launch_seconds`` and a node ``memory_bytes``.

    ``data`` is "synthetic", "digits", or a kind and a path such as "cifar10:DIRECTORY". With
    ``epochs`` a launch trains so often through it, from a seed of its own, and says its accuracy
    after each. ``learning_rate_rule`` says how the rate follows the global batch. Accuracies
    within ``accuracy_margin`` are the same; ``target_accuracy`` is what the time is told to.
    With ``resources`` processors, memory, network, GPUs and power are sampled beside each
    launch; ``node_price`` is what an hour of a node costs.
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
    learning_rate: float = 0.01
    factors: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    design_kind: str = "full"
    generators: tuple[str, ...] = ()
    runs: Sequence[Mapping[str, Any]] = ()
    block_by: str = ""
    warmup: str = "fixed"
    half_width: float | None = None
    most_launches: int = 30
    most_seconds: float | None = None
    launch_seconds: float | None = None
    memory_bytes: float | None = None
    data: str = SYNTHETIC
    epochs: int = 0
    learning_rate_rule: str = "constant"
    target_accuracy: float | None = None
    accuracy_margin: float = 0.01
    resources: bool = False
    node_price: float | None = None

    def __post_init__(self) -> None:
        self._check_training()
        for key, known in CHOICES.items():
            chosen = dict.fromkeys(known)
            look_up(key, getattr(self, key), chosen, f"one of {', '.join(known)}")
        setters: dict[str, str] = {}
        for name, levels in self.factors.items():
            check_levels(name, levels)
            other = setters.setdefault(FACTORS[name].setting, name)
            if other != name:
                raise InputError(f"{other} and {name} set the same", "leave one of them out")
        if self.order == "blocked":
            look_up("factor", self.block_by, dict.fromkeys(self.factors), "name one in block_by")
        elif self.block_by:
            raise InputError(
                f"order is '{self.order}', and block_by is ignored", 'write order = "blocked"'
            )

    def _check_training(self) -> None:
        """Refuse data and aims that mean nothing."""
        data_source(self.data)
        if self.epochs and self.data == SYNTHETIC and "data" not in self.factors:
            raise InputError(
                "synthetic data has no accuracy to train to", "name data: digits, cifar10:PATH"
            )
        for words, value in (
            ("target accuracy", self.target_accuracy),
            ("accuracy margin", self.accuracy_margin),
        ):
            if value is not None and not 0.0 < value < 1.0:
                raise InputError(f"{words} of {value:g} is impossible", "write it like 0.95")

    @classmethod
    def of(cls, source: str = "the study", **values: Any) -> "StudySettings":
        """Settings as people write them: names by commas or in a list, processes as numbers.

        ``processes`` may be 2, "1x1,1x2" or [1, 2, "2x4"]. ``source`` names where the values are
        from in errors.
        """
        known = {one.name: one.default for one in fields(cls)}
        for key, value in values.items():
            default = look_up(f"setting of {source}", key, known, f"one of {', '.join(known)}")
            if key == "processes":
                values[key] = tuple(dict.fromkeys(as_places(value)))
            elif key == "threads":
                values[key] = _thread_counts(value)
            elif key in ("factors", "runs"):
                continue
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
        """Settings of a TOML file, ``others`` first; a mistake is told with its line."""
        from paceline.study.file import read_study_file

        return read_study_file(Path(path), **others)

    @cached_property
    def points(self) -> list[dict[str, Any]]:
        """The combinations of levels that are run; one of no levels where there are no factors."""
        if self.runs or self.design_kind == "list":
            if self.factors or not self.runs or self.design_kind != "list":
                raise InputError(
                    "a list of runs is a design of its own",
                    'write kind = "list" with [[design.run]] tables, and no [factors]',
                )
            return [dict(levels) for levels in self.runs]
        return design_points(self.design_kind, self.factors, self.generators, self.seed)

    def jobs(self, run_here: bool = True) -> "Iterator[Job]":
        """Every configuration as a job; what cannot run is refused before anything starts.

        Of jobs that are not to ``run_here`` it is not asked whether launcher and room are there.
        """
        from paceline.study.jobs import jobs_of_settings

        for levels in self.points:
            single = replace(
                self,
                **settings_at(levels),
                factors={},
                design_kind="full",
                generators=(),
                runs=(),
                order="random",
                block_by="",
            )
            for job in jobs_of_settings(single, run_here):
                yield replace(job, factors=levels)

    def design(self, run_here: bool = True) -> "Design":
        """The jobs, and the order in which their launches run."""
        from paceline.measurement.study import Design

        jobs, stopping = list(self.jobs(run_here)), self.stopping
        launches = self.launches if stopping is None else stopping.looks[0]
        design = Design.randomised(jobs, launches, self.seed, self.block_by)
        if self.order == "given":
            design = replace(design, order=tuple(range(len(jobs))) * launches)
        return replace(
            design,
            stopping=stopping,
            most_seconds=self.most_seconds,
            launch_seconds=self.launch_seconds,
            detect_warmup=self.warmup == "detect",
            accuracy=self._accuracy(),
            node_price=self.node_price,
        )

    def _accuracy(self) -> dict[str, Any] | None:
        """What accuracies are held to, where there are any."""
        if not self.epochs and "epochs" not in self.factors:
            return None
        return {"target": self.target_accuracy, "margin": self.accuracy_margin}

    @property
    def stopping(self) -> StoppingRule | None:
        """When to stop adding launches; None where their number is given."""
        if self.half_width is None:
            return None
        return StoppingRule(self.half_width, self.most_launches)


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
