"""Evidence: measurements of a job or a machine that `predict` uses."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from paceline.predictor.schedule.step_costs import CollectiveSeconds, LayerTime

if TYPE_CHECKING:
    from paceline.predictor.prediction_inputs import ModelledStep


@dataclass(frozen=True, slots=True)
class Colocated:
    """Slowdown of processes that train concurrently on one machine without communication.

    ``slowdown`` is the mean step of a process over that of one alone; ``slowest`` the slowest
    process of each step over the mean one. ``relative_error`` is the standard error of the step
    of another launch, estimated from ``launches``.
    """

    slowdown: float
    slowest: float = 1.0
    relative_error: float | None = None
    launches: int = 0


@dataclass(frozen=True)
class Baseline:
    """A measured step of the same job elsewhere: other devices, another batch, another plan.

    Layer times are scaled so that ``step`` takes ``seconds``.
    """

    step: "ModelledStep"
    seconds: float


@dataclass(frozen=True)
class Evidence:
    """Measurements that replace modelled quantities; None or empty means not measured.

    ``alone_seconds`` is a step of one device on the same batch, ``alone_error`` its relative
    standard error (of another launch). ``layers`` are times by name, for one micro-batch of one
    device. ``input_seconds`` is the exposed input time in a step of one device,
    ``update_seconds`` its optimizer's update. ``all_reduce`` gives seconds by bytes for a number
    of ranks placed as in the prediction. ``spread`` is the coefficient of variation of workers'
    times. ``colocation`` has the slowdown of concurrent processes by their number.
    ``baseline`` is a step of the job elsewhere. ``source`` describes the origin;
    ``launches`` counts the launches.
    """

    alone_seconds: float | None = None
    alone_error: float | None = None
    layers: tuple[LayerTime, ...] = ()
    input_seconds: float | None = None
    update_seconds: float | None = None
    all_reduce: Mapping[int, CollectiveSeconds] = field(default_factory=lambda: _NOTHING)
    spread: float | None = None
    colocation: Mapping[int, Colocated] = field(default_factory=lambda: MappingProxyType({}))
    baseline: Baseline | None = None
    source: str = ""
    launches: int = 0

    @property
    def knows_work(self) -> bool:
        """Whether the time of one device is measured, in whole or by layer."""
        return bool(self.layers) or self.alone_seconds is not None or self.baseline is not None


_NOTHING: Mapping[int, CollectiveSeconds] = MappingProxyType({})
NO_EVIDENCE = Evidence()
