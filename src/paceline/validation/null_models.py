"""Null models: trivial predictions that a model must beat."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from paceline.errors import PacelineError
from paceline.hardware import catalogue
from paceline.validation.forecast import Forecast, Skipped
from paceline.validation.published_row import Configuration, PublishedRow
from paceline.validation.published_workload import sample_flops
from paceline.workload.precision import precision

_NEEDS_BASELINE = Skipped("this null model needs a baseline")


@dataclass(frozen=True)
class PerfectScaling:
    """Throughput per device of the baseline at any number of devices."""

    name: str = "perfect scaling"

    def predict(
        self, configuration: Configuration, baseline: PublishedRow | None
    ) -> Forecast | Skipped:
        if baseline is None:
            return _NEEDS_BASELINE
        return Forecast(perfect_throughput(configuration, baseline))


@dataclass(frozen=True)
class RingWithoutOverlap:
    """Perfect scaling plus one exposed flat ring all-reduce of all gradients at line rate.

    Two bytes per parameter in 16-bit training, else four. The ring has the bandwidth of all NICs
    of a node, or of the link between devices inside one node.
    """

    name: str = "ring without overlap"

    def predict(
        self, configuration: Configuration, baseline: PublishedRow | None
    ) -> Forecast | Skipped:
        if baseline is None:
            return _NEEDS_BASELINE
        if configuration.n_params is None:
            return Skipped("the number of parameters is unknown")
        bandwidth = line_rate(configuration)
        if isinstance(bandwidth, Skipped):
            return bandwidth
        devices = configuration.devices
        gradient_bytes = configuration.n_params * (2 if configuration.half_precision else 4)
        ideal_seconds = configuration.global_batch / perfect_throughput(configuration, baseline)
        ring_seconds = 2 * (devices - 1) / devices * gradient_bytes / bandwidth
        return Forecast(configuration.global_batch / (ideal_seconds + ring_seconds))


@dataclass(frozen=True)
class FlopsOverPeak:
    """Training FLOP over the peak rate of all devices, at one utilisation per source."""

    utilisation: Mapping[str, float]
    name: str = "FLOPs over peak"

    @classmethod
    def fitted(cls, measurements: Iterable[PublishedRow]) -> "FlopsOverPeak":
        """The null model with the utilisation of least mean error on the rows of each source.

        It is fitted to the rows that it is scored on, so it is the best of its kind.
        """
        reached: dict[str, list[float]] = defaultdict(list)
        for row in measurements:
            ideal = ideal_throughput(row.configuration)
            if isinstance(ideal, float):
                reached[row.configuration.family].append(row.throughput / ideal)
        return cls({family: _least_error(ratios) for family, ratios in reached.items()})

    def predict(
        self, configuration: Configuration, baseline: PublishedRow | None
    ) -> Forecast | Skipped:
        ideal = ideal_throughput(configuration)
        if isinstance(ideal, Skipped):
            return ideal
        return Forecast(ideal * self.utilisation[configuration.family])


def ideal_throughput(configuration: Configuration) -> float | Skipped:
    """Units per second if every device computed at its peak."""
    flops = sample_flops(configuration)
    if isinstance(flops, Skipped):
        return flops
    try:
        arithmetic = precision(configuration.precision).compute
        peak = catalogue.device(configuration.device).peak(arithmetic)
    except PacelineError as problem:
        return Skipped(problem.message)
    return configuration.devices * peak / flops


def _least_error(ratios: list[float]) -> float:
    """The x with the least mean of |x / ratio - 1|: the median weighted by 1 / ratio."""
    # The derivative of the sum of |x / r - 1| is the sum of sign(x - r) / r: zero at the weighted
    # median.
    half = sum(1.0 / ratio for ratio in ratios) / 2.0
    passed = 0.0
    for ratio in sorted(ratios):
        passed += 1.0 / ratio
        if passed >= half:
            return ratio
    return math.nan


def perfect_throughput(configuration: Configuration, baseline: PublishedRow) -> float:
    """Throughput if every device were as fast as a device of the baseline."""
    return baseline.throughput * configuration.devices / baseline.configuration.devices


def line_rate(configuration: Configuration) -> float | Skipped:
    """Upper bound of the bandwidth of a flat ring over all devices, bytes/s."""
    name = configuration.inter_link if configuration.nodes > 1 else configuration.intra_link
    if not name:
        return Skipped("its link is not stated")
    try:
        link = catalogue.link(name)
        bandwidth = link.known_bandwidth
    except PacelineError as problem:
        return Skipped(problem.message)
    nics = configuration.nics_per_node or 1
    return bandwidth * nics if link.per == "nic" else bandwidth
