"""The search space: degrees, micro-batches, recomputation, sharding."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paceline.errors import InputError
from paceline.predictor.partition.tensor_parallel import Role, common_size, divide, is_transformer
from paceline.workload.graph import Graph

ZERO_STAGES = (0, 1, 2, 3)


@dataclass(frozen=True)
class Degrees:
    """Pipeline, chunks per stage and replicas that go with one tensor-parallel degree.

    Arrays of equal length; ``devices`` is the number of devices of each combination.
    """

    tp: int
    pp: NDArray[np.int64]
    interleave: NDArray[np.int64]
    dp: NDArray[np.int64]
    devices: NDArray[np.int64]

    @property
    def size(self) -> int:
        """Number of combinations."""
        return int(self.pp.size)


@dataclass(frozen=True)
class Space:
    """Plans for ``global_batch`` samples per step on any of ``devices`` devices.

    ``blocks`` is the number of equal blocks; 1 if blocks differ, which excludes pipelines. Stages
    may have several chunks if ``interleaves``.
    """

    graph: Graph
    global_batch: int
    devices: tuple[int, ...]
    blocks: int
    interleaves: bool = True

    def degrees(self) -> list[Degrees]:
        """Combinations of degrees that use all devices and divide layers and batch."""
        found = []
        for tp in self._tensor_degrees():
            rows = [
                (pp, interleave, count // (tp * pp), count)
                for count in self.devices
                if count % tp == 0
                for pp in divisors(count // tp)
                if self.blocks % pp == 0 and self.global_batch % (count // (tp * pp)) == 0
                for interleave in self._chunks(pp)
            ]
            if rows:
                columns = np.array(rows, dtype=np.int64).T
                found.append(Degrees(tp, *columns))
        if not found:
            counts = (
                f"{self.devices[0]}" if len(self.devices) == 1 else "any of the given numbers of"
            )
            raise InputError(
                f"no plan divides a global batch of {self.global_batch} over {counts} devices",
                "use a global batch that is a multiple of the number of replicas",
            )
        return found

    def micro_batches(self, degrees: Degrees) -> NDArray[np.float64]:
        """All micro-batch sizes of any combination."""
        sizes = {
            size for dp in np.unique(degrees.dp) for size in divisors(self.global_batch // int(dp))
        }
        return np.array(sorted(sizes), dtype=np.float64)

    def sequence_parallel(self, tp: int) -> tuple[bool, ...]:
        """Options of sequence parallelism: only for transformers with tp > 1."""
        return (False, True) if tp > 1 and is_transformer(self.graph) else (False,)

    def _chunks(self, pp: int) -> list[int]:
        return divisors(self.blocks // pp) if pp > 1 and self.interleaves else [1]

    def _tensor_degrees(self) -> list[int]:
        possible = sorted({d for count in self.devices for d in divisors(count)})
        common = common_size(self.graph)
        if all(division.role is Role.WHOLE for division in divide(self.graph)):
            return [1]  # layers of a captured model cannot be divided
        return [tp for tp in possible if common % tp == 0]


def divisors(number: int) -> list[int]:
    """All divisors, rising."""
    small = [d for d in range(1, int(number**0.5) + 1) if number % d == 0]
    return small + [number // d for d in reversed(small) if d * d != number]


def device_counts(devices_per_node: int, nodes: Sequence[int]) -> tuple[int, ...]:
    """Devices of whole nodes."""
    return tuple(sorted({devices_per_node * count for count in nodes}))
