"""Settings of a study, from Python or TOML."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paceline.errors import InputError
from paceline.naming import look_up
from paceline.stats.designs import design_points
from paceline.stats.stopping import StoppingRule
from paceline.study.study_factors import FACTORS, check_levels, settings_at
from paceline.study.training_data import RATE_RULES, SYNTHETIC, data_source
from paceline.topology import Topology, as_topologies, parse_counts

if TYPE_CHECKING:
    from paceline.measurement.job import Job
    from paceline.measurement.study_runner import Design

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
"""Example values of optional settings."""

ORDERS = {
    "random": "blocks with every configuration once, shuffled",
    "blocked": "as random, but within a block, equal levels of block_by follow each other",
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
    """One network on several topologies, with one or several frameworks.

    ``batch`` is the number of samples per process (``scaling`` "weak") or of all processes together
    ("strong"). ``processes`` are topologies: nodes, and processes per node. ``launches`` is the
    number of launches per configuration, or one number for each; a launch has ``steps`` counted
    steps after ``warmup_steps``. ``instruments`` are none (throughput), phases, layers. With
    ``no_sync`` several processes also run co-located without communication. ``seq`` is the number
    of tokens per sample, ``bucket_bytes`` the bucket size of DDP. ``threads`` is the number of
    threads and cores per process, or several to compare. ``seed`` determines the order of
    launches, the initial weights and the data. ``launcher`` starts the processes [the one that the
    framework needs, else local] on ``hosts`` (repetitions are allowed) with ``launcher_options``
    such as "partition=debug". ``oversubscribe`` allows more processes than cores. ``emulate``
    names a device of the catalogue; ranks sleep for its predicted times, multiplied by
    ``time_scale``. ``labs`` are lab options such as "link=1gbit+delay=200us+speed=0.5", each with
    its own launches.

    ``factors`` are levels by name (`paceline.study.study_factors.FACTORS`), combined by a design
    (`paceline.stats.designs.KINDS`); ``runs`` are the combinations of a "list" design. ``warmup``
    is "fixed", or "detect" to drop the detected warm-up, at least ``warmup_steps``. With
    ``half_width``, a fraction of the mean, launches are added until the interval is narrower, up
    to ``most_launches`` per configuration and ``most_seconds`` in total. ``launch_seconds`` limits
    a launch and ``memory_bytes`` a node.

    ``data`` is "synthetic", "digits", or a kind and a path such as "cifar10:DIRECTORY". With
    ``epochs`` a launch makes that many passes over the data with its own seed and reports its
    accuracy after each. ``learning_rate_rule`` scales the learning rate with the global batch.
    Accuracies within ``accuracy_margin`` count as equal; ``target_accuracy`` is that of the time
    to accuracy. ``resources`` samples processors, memory, network, GPUs and power during each
    launch; ``node_price`` is the price of a node per hour.
    """

    model: str = "resnet44"
    batch: int = 64
    processes: tuple[Topology, ...] = ((1, 1),)
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
                raise InputError(
                    f"{other} and {name} change the same setting", "remove one of them"
                )
        if self.order == "blocked":
            look_up("factor", self.block_by, dict.fromkeys(self.factors), "name one in block_by")
        elif self.block_by:
            raise InputError(
                f"block_by has no effect with order '{self.order}'", 'write order = "blocked"'
            )

    def _check_training(self) -> None:
        data_source(self.data)
        if self.epochs and self.data == SYNTHETIC and "data" not in self.factors:
            raise InputError(
                "training by epochs needs real data", "set data to digits, cifar10:PATH, ..."
            )
        for name, value in (
            ("target accuracy", self.target_accuracy),
            ("accuracy margin", self.accuracy_margin),
        ):
            if value is not None and not 0.0 < value < 1.0:
                raise InputError(f"{name} must be between 0 and 1 (got {value:g})", "write 0.95")

    @classmethod
    def of(cls, source: str = "the study", **values: Any) -> "StudySettings":
        """Parse settings: names separated by commas or in a list, processes as numbers.

        ``processes`` can be 2, "1x1,1x2" or [1, 2, "2x4"]. Errors name ``source`` as the origin of
        the values.
        """
        known = {one.name: one.default for one in fields(cls)}
        for key, value in values.items():
            default = look_up(f"setting of {source}", key, known, f"one of {', '.join(known)}")
            if key == "processes":
                values[key] = tuple(dict.fromkeys(as_topologies(value)))
            elif key == "threads":
                values[key] = _thread_counts(value)
            elif key in ("factors", "runs"):
                continue
            elif isinstance(default, tuple):
                values[key] = _names(key, value, key != "hosts")
            elif not _has_type_of(value, EXAMPLES.get(key, default), key in EXAMPLES):
                example = EXAMPLES.get(key, default)
                raise InputError(
                    f"{source}: {key} must be a value like {example!r} (got {value!r})",
                    f"write {key} = {example!r}".replace("'", '"'),
                )
        return cls(**values)

    @classmethod
    def read(cls, path: Path | str, **others: Any) -> "StudySettings":
        """Read settings from a TOML file, overridden by ``others``; errors name the line."""
        from paceline.study.study_file import read_study_file

        return read_study_file(Path(path), **others)

    @cached_property
    def points(self) -> list[dict[str, Any]]:
        """Combinations of levels to run; a single empty one without factors."""
        if self.runs or self.design_kind == "list":
            if self.factors or not self.runs or self.design_kind != "list":
                raise InputError(
                    "a list design needs runs and takes no factors",
                    'write kind = "list" with [[design.run]] tables, and no [factors]',
                )
            return [dict(levels) for levels in self.runs]
        return design_points(self.design_kind, self.factors, self.generators, self.seed)

    def jobs(self, run_here: bool = True) -> "Iterator[Job]":
        """Every configuration as a job; an invalid one raises an error before the study starts.

        Launcher and resources are checked only if the jobs ``run_here``.
        """
        from paceline.study.study_jobs import jobs_of_settings

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
        """Jobs, and the order of their launches."""
        from paceline.measurement.study_runner import Design

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
        """Target and margin of accuracies; None without epochs."""
        if not self.epochs and "epochs" not in self.factors:
            return None
        return {"target": self.target_accuracy, "margin": self.accuracy_margin}

    @property
    def stopping(self) -> StoppingRule | None:
        """Stopping rule; None if the number of launches is fixed."""
        if self.half_width is None:
            return None
        return StoppingRule(self.half_width, self.most_launches)


def _has_type_of(value: Any, example: Any, may_be_none: bool) -> bool:
    """Whether a value has the type of an example; an integer is a valid float."""
    if value is None:
        return may_be_none
    if isinstance(example, float) and type(value) in (int, float):
        return bool(abs(value) < 1e18)  # False for NaN too
    return type(value) is type(example) and (type(value) is not int or abs(value) < 2**63)


def _thread_counts(value: Any) -> tuple[int, ...]:
    """Threads per process: ``2``, ``"1,2"`` or ``[1, 2]``."""
    if isinstance(value, str):
        return tuple(parse_counts(value, "threads", "--threads"))
    counts = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not counts or any(type(count) is not int or count < 1 for count in counts):
        raise InputError(
            f"threads must be positive integers (got {value!r})", "write threads = 1 or [1, 2]"
        )
    return tuple(dict.fromkeys(counts))


def _names(key: str, value: Any, each_once: bool = True) -> tuple[str, ...]:
    """Parse names from ``"a,b"`` or ``["a", "b"]``."""
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
        raise InputError(
            f"{key} must be a list of names (got {value!r})", f'write {key} = ["a", "b"]'
        )
    names = tuple(part.strip() for part in parts if part.strip())
    names = tuple(dict.fromkeys(names)) if each_once else names
    if not names and key not in MAY_BE_EMPTY:
        raise InputError(f"no {key.removesuffix('s')} given", f"separate {key} by commas")
    return names
