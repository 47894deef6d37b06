"""Evidence: what was measured of a job or of the place where it runs, for `predict` to use."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from paceline.predictor.step_costs import CollectiveSeconds, LayerTime

if TYPE_CHECKING:
    from paceline.predictor.prepared import PreparedStep


@dataclass(frozen=True, slots=True)
class Colocated:
    """Processes that trained on one machine at the same time without communication.

    ``slowdown`` is the mean step of a process over that of one alone; ``slowest`` the slowest
    process of each step over the mean one. ``relative_error`` is the standard error of another
    launch's step.
    """

    slowdown: float
    slowest: float = 1.0
    relative_error: float | None = None


@dataclass(frozen=True)
class Baseline:
    """A measured step of the same job elsewhere: other devices, another batch, another plan.

    Layer times are scaled such that ``job`` takes ``seconds``.
    """

    job: "PreparedStep"
    seconds: float


@dataclass(frozen=True)
class Evidence:
    """Measurements that replace what the model says; None or empty was not measured.

    ``alone_seconds`` is a step of one device on the same batch, ``alone_error`` its relative
    standard error (of another launch). ``layers`` are times by name, for one micro-batch of one
    device. ``input_seconds`` is what of the input shows in a step of one device,
    ``update_seconds`` its optimiser's update. ``all_reduce`` gives seconds by bytes for a number
    of ranks of one node. ``spread`` is the coefficient of variation of workers' times.
    ``colocation`` has what processes of one machine do to each other, by their number.
    ``baseline`` is a step of the job elsewhere. ``source`` says in words where all this comes
    from; ``launches`` is how many launches it rests on.
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
