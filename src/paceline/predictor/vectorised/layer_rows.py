"""Sums of layer times over arrays of batches and rates, equal layers computed once."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paceline.hardware import Device
from paceline.predictor.compute import LayerWork, layer_work
from paceline.predictor.efficiency import Efficiency, load_efficiency
from paceline.predictor.frameworks import FrameworkProfile
from paceline.predictor.products import BACKWARD, FORWARD
from paceline.predictor.vectorised.axes import Array
from paceline.workload.cost import GraphProfile
from paceline.workload.precision import precision


class LayerRows:
    """Layers of a graph whose times are summed in groups.

    ``groups`` are lists of (pass, layer) pairs; `seconds` gives the sum of each. Passes of
    layers that cost the same are computed once and counted.
    """

    def __init__(
        self,
        profile: GraphProfile,
        groups: Sequence[Sequence[tuple[int, int]]],
        device: Device,
        number_format: str,
        framework: FrameworkProfile,
        efficiency: Efficiency | None,
    ) -> None:
        self._profile = profile
        self._device = device
        self._precision = precision(number_format)
        self._framework = framework
        self._efficiency = efficiency or load_efficiency()
        self._last: tuple[Array, RowsAtBatches] | None = None
        self._member = np.zeros((len(groups), 2 * len(profile.layers)))
        for number, group in enumerate(groups):
            for stage, layer in group:
                self._member[number, stage * len(profile.layers) + layer] += 1.0

    def at(self, batches: Array) -> "RowsAtBatches":
        """The rows for an array of batches; those asked for last are kept."""
        if self._last is None or not np.array_equal(self._last[0], batches):
            self._last = batches, self._at(batches)
        return self._last[1]

    def _at(self, batches: Array) -> "RowsAtBatches":
        work = layer_work(
            self._profile,
            batches,
            self._device,
            self._precision,
            self._efficiency,
            self._framework.convolution,
            self._framework.pointwise_traffic,
        )
        rows = 2 * len(self._profile.layers)
        parts = work.parts
        columns = [part.reshape(rows, batches.size) for part in parts.values()]
        table = np.concatenate(columns, axis=1)
        distinct, place = np.unique(table, axis=0, return_inverse=True)
        counts = np.zeros((self._member.shape[0], len(distinct)))
        np.add.at(counts.T, place.ravel(), self._member.T)
        kept = zip(parts, np.split(distinct, len(parts), axis=1), strict=True)
        return RowsAtBatches(
            LayerWork((), gradient_bytes=np.zeros(0), **dict(kept)),
            counts,
            self._efficiency.attainable_flops(self._device, self._precision.compute)
            / self._device.peak(self._precision.compute),
            self._efficiency.launch(self._device),
            self._framework.dispatch_seconds,
        )


@dataclass(frozen=True)
class RowsAtBatches:
    """Distinct passes of layers for given batches, asked for times at any rates.

    ``counts`` says how many of each are in each group; ``attainable`` is the fraction of peak
    that the best product reaches.
    """

    work: LayerWork
    counts: Array
    attainable: float
    launch_seconds: float
    dispatch_seconds: float

    @property
    def distinct(self) -> int:
        """Passes of layers that are computed."""
        return int(self.counts.shape[1])

    def seconds(self, batch: int | NDArray[np.intp], flops: Array, memory: Array) -> Array:
        """Sum of each group by configuration.

        ``batch`` is a position in the batches, or one for each configuration; ``flops`` (peak)
        and ``memory`` are rates by configuration.
        """
        chosen = LayerWork(
            (),
            gradient_bytes=np.zeros(0),
            **{
                name: np.ascontiguousarray(part[:, batch]).reshape(len(part), -1)
                for name, part in self.work.parts.items()
            },
        )
        times = chosen.seconds(
            self.attainable * flops, memory, self.launch_seconds, self.dispatch_seconds
        )
        return np.asarray(self.counts @ times)


def all_forward(layers: int) -> list[tuple[int, int]]:
    """The group of all forward passes."""
    return [(FORWARD, layer) for layer in range(layers)]


def backward_of(layers: Sequence[int]) -> list[tuple[int, int]]:
    """The group of the backward passes of some layers."""
    return [(BACKWARD, layer) for layer in layers]
