"""Comparison of data and model parallelism along one or two axes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, overload

import numpy as np

from paceline.errors import InputError
from paceline.hardware import Cluster
from paceline.naming import look_up
from paceline.predictor.kernels.layer_arrays import Array
from paceline.predictor.plan.plan import Plan
from paceline.predictor.sweep.crossover import Crossing, crossings
from paceline.predictor.sweep.data_parallel import DataParallelSweep
from paceline.predictor.sweep.model_parallel import ModelParallelSweep
from paceline.predictor.sweep.sweep_axes import AXES, Points, base_values
from paceline.render.result import Part, PublicResult
from paceline.workload.workload import Workload

WAYS = {"dp": "data parallel", "mp": "model parallel by filter"}
"""Methods that can be compared."""


@dataclass(frozen=True, repr=False)
class SweepComparison(PublicResult):
    """Step times of each method over the axes, and crossover points.

    ``axes`` has one or two entries; ``seconds`` by way have their lengths as shape, and
    ``samples`` are samples per step. Crossings are along the first axis, one list for each
    value of the second. ``settings`` are the options of the job, by name.
    """

    schema: ClassVar[str] = "sweep/1"
    axes: Mapping[str, Array]
    seconds: Mapping[str, Array]
    samples: Array
    crossings: tuple[tuple[Crossing, ...], ...]
    settings: Mapping[str, Any] = field(default_factory=dict)

    def parts(self) -> list[Part]:
        """A table and a plot over one axis, a surface over two, and all crossovers."""
        from paceline.predictor.sweep.sweep_tables import sweep_parts
        from paceline.render.terminal import terminal_width

        return list(sweep_parts(self, terminal_width()))

    def summary(self) -> str:
        """Methods and axes."""
        return f"{' and '.join(self.seconds)} along {' and '.join(self.axes)}"

    def to_dict(self) -> dict[str, Any]:
        """Options, values of the axes, seconds of each method, and crossovers."""
        from paceline.predictor.sweep.sweep_tables import sweep_json

        return {**self.settings, **sweep_json(self)}

    def rows(self) -> list[dict[str, Any]]:
        """One row per point: values of the axes in SI units, seconds of each method."""
        axes = list(self.axes.items())
        return [
            {name: float(values[i]) for (name, values), i in zip(axes, index, strict=True)}
            | {f"{way}_step_seconds": float(found[index]) for way, found in self.seconds.items()}
            for index in np.ndindex(*(len(values) for _, values in axes))
        ]

    def samples_per_second(self, way: str) -> Array:
        """Throughput of all devices."""
        return np.asarray(self.samples / self.seconds[way])


@dataclass(frozen=True, repr=False)
class SweepComparisons(PublicResult, Sequence[SweepComparison]):
    """Sweeps of several jobs along the same axes: one table with a column per varied option."""

    schema: ClassVar[str] = "sweep/1"
    items: tuple[SweepComparison, ...]

    @overload
    def __getitem__(self, index: int) -> SweepComparison: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[SweepComparison, ...]: ...

    def __getitem__(self, index: int | slice) -> SweepComparison | tuple[SweepComparison, ...]:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    def parts(self) -> list[Part]:
        """One row per job and point, and the crossovers of each job."""
        from paceline.predictor.sweep.sweep_tables import sweeps_parts

        return list(sweeps_parts(self.items))

    def summary(self) -> str:
        """The number of jobs, methods and axes."""
        return f"{len(self.items)} jobs: {self.items[0].summary()}"

    def to_dict(self) -> dict[str, Any]:
        """The sweep of each job."""
        return {"sweeps": [each.to_dict() for each in self.items]}

    def rows(self) -> list[dict[str, Any]]:
        """One row per job and point, with the options that differ between jobs."""
        from paceline.predictor.sweep.sweep_tables import differing_settings

        names = differing_settings(self.items)
        return [
            {**{name: each.settings.get(name) for name in names}, **row}
            for each in self.items
            for row in each.rows()
        ]


def compare(
    workload: Workload,
    cluster: Cluster,
    axes: Mapping[str, Sequence[float]],
    ways: Sequence[str] = ("dp", "mp"),
    *,
    plan: Plan | None = None,
    global_batch: int | None = None,
) -> SweepComparison:
    """Compare ``ways`` over one or two of the five axes; others stay as given.

    With ``global_batch`` the samples per step do not depend on the number of nodes, and batch
    cannot be an axis.
    """
    return _Comparer(workload, cluster, tuple(axes), plan or Plan(), global_batch).run(axes, ways)


class _Comparer:
    """Evaluates the methods at points of the chosen axes."""

    def __init__(
        self,
        workload: Workload,
        cluster: Cluster,
        names: tuple[str, ...],
        plan: Plan,
        global_batch: int | None,
    ) -> None:
        hint = f"one of {', '.join(AXES)}"
        for name in names:
            look_up("axis", name, dict.fromkeys(AXES), hint)
        if not 1 <= len(names) <= 2:
            raise InputError(
                f"sweep supports 1 or 2 axes (got {len(names)})", "give one or two axes"
            )
        if global_batch is not None and "batch" in names:
            raise InputError(
                "--global-batch and a batch axis are mutually exclusive", "omit one of them"
            )
        if "link" in names:
            cluster.require_network()
        self.cluster, self.names, self.global_batch = cluster, names, global_batch
        self.ways: dict[str, DataParallelSweep | ModelParallelSweep] = {
            "dp": DataParallelSweep(workload, cluster, plan),
            "mp": ModelParallelSweep(workload, cluster, plan),
        }
        self.base = base_values(workload, cluster)

    def run(self, axes: Mapping[str, Sequence[float]], ways: Sequence[str]) -> SweepComparison:
        for way in ways:
            look_up("way", way, WAYS, f"one of {', '.join(WAYS)}")
        values = {name: np.sort(np.asarray(axes[name], dtype=float)) for name in self.names}
        mesh = np.meshgrid(*values.values(), indexing="ij")
        points = self._points(dict(zip(self.names, mesh, strict=True)))
        shape = mesh[0].shape
        seconds = {way: self.ways[way].at(points).reshape(shape) for way in ways}
        samples = points.batch * points.nodes * self.cluster.devices_per_node
        found = self._crossings(values, seconds) if len(ways) == 2 else ()
        return SweepComparison(values, seconds, samples.reshape(shape), found)

    def _points(self, given: Mapping[str, Array]) -> Points:
        size = next(iter(given.values())).size
        columns = {
            name: np.ravel(given[name]) if name in given else np.full(size, self.base[name])
            for name in AXES
        }
        if self.global_batch is not None:
            workers = columns["nodes"] * self.cluster.devices_per_node
            columns["batch"] = self.global_batch / workers
            if columns["batch"].min() < 1:
                raise InputError(
                    f"global batch {self.global_batch} is smaller than the number of workers "
                    f"({workers.max():.0f})",
                    "use fewer nodes or a larger batch",
                )
        return Points(**columns)

    def _crossings(
        self, values: Mapping[str, Array], seconds: Mapping[str, Array]
    ) -> tuple[tuple[Crossing, ...], ...]:
        """Crossings along the first axis, for each value of the second."""
        if len(self.names) == 1:
            return (self._along({}, values[self.names[0]], seconds),)
        second = self.names[1]
        return tuple(
            self._along(
                {second: np.array([value])},
                values[self.names[0]],
                {way: own[:, column] for way, own in seconds.items()},
            )
            for column, value in enumerate(values[second])
        )

    def _along(
        self, fixed: Mapping[str, Array], values: Array, seconds: Mapping[str, Array]
    ) -> tuple[Crossing, ...]:
        axis = self.names[0]
        first, second = seconds

        def seconds_of(way: str) -> Callable[[float], float]:
            sweep = self.ways[way]
            return lambda value: float(
                sweep.at(self._points({axis: np.array([value]), **fixed}))[0]
            )

        return tuple(
            crossings(
                axis,
                values.tolist(),
                (first, second),
                (seconds[first].tolist(), seconds[second].tolist()),
                (seconds_of(first), seconds_of(second)),
            )
        )
