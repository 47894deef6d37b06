"""What was measured of one machine: its profile, with date and source."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

STALE_AFTER = timedelta(days=7)


@dataclass(frozen=True)
class CollectivePoint:
    """Median seconds of one all-reduce of ``size_bytes``, with the middle half of repetitions."""

    size_bytes: float
    seconds: float
    lower_quartile_seconds: float
    upper_quartile_seconds: float


@dataclass(frozen=True)
class Colocation:
    """How many times slower each of several ranks runs beside the others than alone."""

    arithmetic: float
    memory: float


@dataclass(frozen=True)
class TrainingColocation:
    """Processes that trained at the same time without communication.

    ``slowdown`` is the mean step of one over that of a process alone, ``slowest`` the slowest
    process of each step over the mean one.
    """

    slowdown: float
    slowest: float


@dataclass(frozen=True)
class TrainingFit:
    """What training launches taught of a machine beyond its probe.

    ``job`` is what was trained, in words. ``compute_factor`` is the step of one process over
    what the rates of the probe predict (None: not comparable). ``step_variation`` and
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
        ratios, beside = document["all_reduce_ratio"], document["colocation"]
        return cls(
            **{
                **document,
                "all_reduce_ratio": {int(ranks): ratio for ranks, ratio in ratios.items()},
                "colocation": {int(n): TrainingColocation(**own) for n, own in beside.items()},
            }
        )


@dataclass(frozen=True)
class MachineProfile:
    """Rates of one machine as the probe saw them, one thread per rank unless said otherwise.

    ``gemm_flops`` maps the size of a square product to FLOP/s, ``memory_bandwidth`` is bytes/s,
    ``all_reduce`` maps a number of ranks to its curve, ``colocation`` to its slowdown.
    ``training`` is what 'paceline calibrate' learnt since; None before.
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
        """The best rate of any size, FLOP/s."""
        return max(self.gemm_flops.values())

    def is_stale(self, now: datetime | None = None) -> bool:
        """Whether it is older than a week."""
        moment = now or datetime.now(UTC)
        return moment - datetime.fromisoformat(self.measured_at) > STALE_AFTER

    def to_json(self) -> dict[str, Any]:
        """The profile as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> "MachineProfile":
        """The profile that `to_json` wrote, in this version or one before."""
        learnt = document.get("training")
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
                "training": TrainingFit.from_json(learnt) if learnt else None,
            }
        )
