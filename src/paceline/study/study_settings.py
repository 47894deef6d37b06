"""Settings of a study, from Python or TOML."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from paceline.errors import InputError
from paceline.naming import look_up
from paceline.spec.knob import check_options
from paceline.spec.study_options import StudyOptions, parse_names
from paceline.stats.designs import design_points
from paceline.stats.stopping import StoppingRule
from paceline.study.study_factors import FACTORS, check_levels, settings_at
from paceline.study.training_data import SYNTHETIC, data_source
from paceline.topology import Topology

if TYPE_CHECKING:
    from paceline.measurement.job import Job
    from paceline.measurement.study_runner import Design


@dataclass(frozen=True)
class StudySettings:
    """One network on several topologies, with one or several frameworks.

    `paceline.spec.study_options.StudyOptions` describes each field; values here are converted to
    SI units. ``factors`` are levels by name (`paceline.study.study_factors.FACTORS`), combined by a
    design (`paceline.stats.designs.KINDS`); ``runs`` are the combinations of a "list" design.
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
    optimizer: str = "sgd"
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
        setters: dict[str, str] = {}
        for name, levels in self.factors.items():
            check_levels(name, levels)
            other = setters.setdefault(FACTORS[name], name)
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

    @classmethod
    def of(cls, **options: Unpack[StudyOptions]) -> "StudySettings":
        """Check and convert settings; None stands for the default."""
        found = check_options(StudyOptions, options, "a study")
        return cls(**{name: as_setting(name, value) for name, value in found.items()})

    @classmethod
    def read(cls, path: Path | str, **others: Unpack[StudyOptions]) -> "StudySettings":
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
            design = replace(design, order=tuple(range(len(jobs))) * launches, order_kind="given")
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
    def compared_frameworks(self) -> tuple[str, ...]:
        """Frameworks that the study compares, as a setting or a factor; empty if it has one."""
        levels = [*self.factors.get("framework", ()), *(run.get("framework") for run in self.runs)]
        names = tuple(dict.fromkeys(filter(None, levels))) or self.frameworks
        return names if len(names) > 1 else ()

    @property
    def compares_frameworks(self) -> bool:
        """Whether frameworks train the same network, so that their parity can be checked."""
        models = {*self.factors.get("model", ()), *(run.get("model", "") for run in self.runs)}
        return bool(self.compared_frameworks) and len(models) <= 1

    def without_frameworks(self, kept: Sequence[str]) -> "StudySettings":
        """The same study without the frameworks that are not ``kept``.

        An error if they are levels of a design that needs all its levels.
        """
        if len(self.frameworks) > 1:
            return replace(self, frameworks=tuple(kept))
        runs = [run for run in self.runs if run.get("framework", kept[0]) in kept]
        factors = dict(self.factors)
        if "framework" in factors:
            lost = [name for name in factors["framework"] if name not in kept]
            if lost and (self.design_kind != "full" or len(kept) < 2):
                raise InputError(
                    f"{', '.join(lost)} failed the parity check, and the design needs it",
                    "remove it from the factor 'framework', or write kind = \"full\"",
                )
            factors["framework"] = [name for name in factors["framework"] if name in kept]
        return replace(self, factors=factors, runs=runs)

    @property
    def stopping(self) -> StoppingRule | None:
        """Stopping rule; None if the number of launches is fixed."""
        if self.half_width is None:
            return None
        return StoppingRule(self.half_width, self.most_launches)


def as_setting(name: str, value: Any) -> Any:
    """A checked value as a field of `StudySettings`: names are tuples, none is an error."""
    if name not in TUPLES:
        return value
    names = parse_names(value) if isinstance(value, str) else tuple(value)
    if not names and name in ("frameworks", "instruments"):
        raise InputError(f"no {name.removesuffix('s')} given", f"give comma-separated {name}")
    return names


TUPLES = tuple(one.name for one in fields(StudySettings) if isinstance(one.default, tuple))
