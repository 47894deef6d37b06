"""The measured profile of one machine, with date and source."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

STALE_AFTER = timedelta(days=7)


@dataclass(frozen=True)
class CollectivePoint:
    """Median and quartiles of the seconds of one all-reduce of ``size_bytes``."""

    size_bytes: float
    seconds: float
    lower_quartile_seconds: float
    upper_quartile_seconds: float


@dataclass(frozen=True)
class Colocation:
    """Slowdown of each of several concurrent ranks relative to one rank alone."""

    arithmetic: float
    memory: float


@dataclass(frozen=True)
class TrainingColocation:
    """Slowdown of processes that train concurrently without communication.

    ``slowdown`` is the mean step of one over that of a process alone, ``slowest`` the slowest
    process of each step over the mean one.
    """

    slowdown: float
    slowest: float


@dataclass(frozen=True)
class TrainingFit:
    """Quantities of a machine fitted to training launches.

    ``job`` describes what was trained. ``compute_factor`` is the step of one process over the
    step predicted from the probe (None: not comparable). ``step_variation`` and
        ``launch_variation`` are coefficients of variation within and between launches.
        ``all_reduce_ratio`` is the all-reduce inside training over that of the probe, by ranks.
    """

    job: str
    launches: int
    compute_factor: float | None
    step_variation: float
    launch_variation: float
    all_reduce_ratio: Mapping[int, float]
    colocation: Mapping[int, TrainingColocation]

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> "TrainingFit":
        """The fit that `MachineProfile.to_json` wrote."""
        ratios, colocation = document["all_reduce_ratio"], document["colocation"]
        return cls(
            **{
                **document,
                "all_reduce_ratio": {int(ranks): ratio for ranks, ratio in ratios.items()},
                "colocation": {int(n): TrainingColocation(**own) for n, own in colocation.items()},
            }
        )


@dataclass(frozen=True)
class MachineProfile:
    """Rates of one machine measured by the probe, with ``threads`` threads per rank.

    ``gemm_flops`` maps the size of a square GEMM to FLOP/s, ``memory_bandwidth`` is bytes/s,
    ``all_reduce`` maps a number of ranks to its curve, ``colocation`` to its slowdown.
    ``training`` is the fit of 'paceline calibrate'; None before the first.
    """

    machine: str
    measured_at: str
    source: str
    threads: int
    gemm_flops: Mapping[int, float]
    memory_bandwidth: float
    all_reduce: Mapping[int, tuple[CollectivePoint, ...]]
    colocation: Mapping[int, Colocation]
    load_average: float
    notes: tuple[str, ...] = field(default=())
    training: TrainingFit | None = None

    @property
    def peak_gemm_flops(self) -> float:
        """The best GEMM rate over all sizes, FLOP/s."""
        return max(self.gemm_flops.values())

    def is_stale(self, now: datetime | None = None) -> bool:
        """Whether it is older than a week."""
        moment = now or datetime.now(UTC)
        return moment - datetime.fromisoformat(self.measured_at) > STALE_AFTER

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> "MachineProfile":
        """The profile that `to_json` wrote, in this or an earlier version."""
        training = document.get("training")
        return cls(
            **{
                **document,
                "gemm_flops": {int(n): rate for n, rate in document["gemm_flops"].items()},
                "all_reduce": {
                    int(ranks): tuple(CollectivePoint(**point) for point in curve)
                    for ranks, curve in document["all_reduce"].items()
                },
                "colocation": {
                    int(ranks): Colocation(**slowdown)
                    for ranks, slowdown in document["colocation"].items()
                },
                "notes": tuple(document["notes"]),
                "training": TrainingFit.from_json(training) if training else None,
            }
        )
