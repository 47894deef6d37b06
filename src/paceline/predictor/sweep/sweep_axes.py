"""The five axes of a sweep (Castello et al., PDP 2021), as grids or as lists of points."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from paceline.errors import InputError
from paceline.hardware import Cluster
from paceline.predictor.kernels.layer_arrays import Array
from paceline.workload.precision import precision
from paceline.workload.workload import Workload

AXES = ("batch", "flops", "memory", "link", "nodes")
"""Short names of the axes, in the order of a grid's dimensions."""


@dataclass(frozen=True)
class Configurations:
    """Numbers on the five axes, one array each.

    ``batch`` is samples per worker and step, ``flops`` the peak of a device in FLOP/s,
    ``memory`` and ``link`` are bandwidths in bytes/s (of a device's memory, and of the link
    between nodes, one way), ``nodes`` counts nodes.
    """

    batch: Array
    flops: Array
    memory: Array
    link: Array
    nodes: Array

    def __post_init__(self) -> None:
        for name in AXES:
            values = np.atleast_1d(np.asarray(getattr(self, name), dtype=np.float64))
            least = 1.0 if name in ("batch", "nodes") else np.nextafter(0.0, 1.0)
            if values.ndim != 1 or values.size == 0:
                raise InputError(
                    f"axis {name} must be a list of numbers", "give one or more numbers"
                )
            if not (np.isfinite(values).all() and (values >= least).all()):
                raise InputError(
                    f"axis {name} contains {values.min():g}",
                    "give positive numbers (1 or more for counts)",
                )
            object.__setattr__(self, name, values)


class Grid(Configurations):
    """Every combination of the numbers on the five axes."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis, in the order of `AXES`."""
        return tuple(getattr(self, name).size for name in AXES)

    @property
    def size(self) -> int:
        """Number of configurations."""
        return int(np.prod(self.shape))


class Points(Configurations):
    """A list of configurations: the i-th numbers of all axes belong together."""

    def __post_init__(self) -> None:
        super().__post_init__()
        sizes = {getattr(self, name).size for name in AXES}
        if len(sizes) != 1:
            raise InputError(
                "axes have different lengths", "give the same number of values on each"
            )

    @property
    def size(self) -> int:
        """Number of configurations."""
        return int(self.batch.size)

    def part(self, chosen: slice) -> "Points":
        """Some of them."""
        return Points(*(getattr(self, name)[chosen] for name in AXES))


def grid_around(workload: Workload, cluster: Cluster, **axes: ArrayLike) -> Grid:
    """The grid over the given axes; other axes keep the values of workload and cluster."""
    base = base_values(workload, cluster)
    return Grid(**{name: np.asarray(axes.get(name, base[name]), dtype=float) for name in AXES})


def base_values(workload: Workload, cluster: Cluster) -> dict[str, float]:
    """The values of a workload and a cluster on the five axes."""
    device = cluster.device
    return {
        "batch": float(workload.batch),
        "flops": device.peak(precision(workload.precision).compute),
        "memory": device.known_memory_bandwidth,
        "link": cluster.inter.known_bandwidth if cluster.inter is not None else 1.0,
        "nodes": float(cluster.nodes),
    }


def cluster_at(cluster: Cluster, workload: Workload, values: dict[str, float]) -> Cluster:
    """The cluster with the rates and the number of nodes of one configuration."""
    device = cluster.device
    scale = values["flops"] / device.peak(precision(workload.precision).compute)
    device = replace(
        device,
        peak_flops={name: scale * rate for name, rate in device.peak_flops.items()},
        attainable_flops={name: scale * rate for name, rate in device.attainable_flops.items()},
        memory_bandwidth=values["memory"],
    )
    link = cluster.inter
    if link is not None:
        reached = link.collective_bandwidth
        ratio = values["link"] / link.known_bandwidth
        link = replace(
            link,
            bandwidth=values["link"],
            collective_bandwidth=None if reached is None else reached * ratio,
        )
    return replace(cluster, device=device, inter=link, nodes=round(values["nodes"]))
