"""Refits everything: on all rows, without each fold of groups, without each source."""

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from paceline.analyse.validation.cases import Case, Mode, cases
from paceline.analyse.validation.fitting.computing_fit import ComputingFit
from paceline.analyse.validation.fitting.folds import GROUP_FOLDS, fold_of, ran_in_folds
from paceline.analyse.validation.fitting.interval_fit import fitted_intervals
from paceline.analyse.validation.fitting.scaling_fit import ScalingFit
from paceline.analyse.validation.jobs import job_of
from paceline.analyse.validation.measurement import Configuration, Measurement
from paceline.analyse.validation.parts import StepTaker, takes_whole_step
from paceline.predictor.fitted.effects import Effects
from paceline.predictor.fitted.tables import Fitted, HeldOut

FloatArray = npt.NDArray[np.float64]
Say = Callable[[str], None]
_FURTHER_ITERATIONS = 6


@dataclass(frozen=True)
class Refit:
    """The full fit and the held-out fits."""

    fitted: Fitted
    held_out: HeldOut


def refit(measurements: Sequence[Measurement], say: Say = lambda text: None) -> Refit:
    """Fit ``measurements``; ``say`` is told how far it is."""
    taker = StepTaker()
    say("taking steps apart")
    pairs = [case for case in cases(measurements, Mode.BASELINE) if _teaches_scaling(case)]
    scaling = ScalingFit(pairs, taker)
    computing = ComputingFit(measurements, taker)
    say(f"fitting {len(scaling.rows)} pairs and {len(computing.rows)} rows")
    full = _Vectors(scaling, computing)
    everything = full.effects(lambda configuration: True)
    by_fold = []
    for number, ran in enumerate(ran_in_folds(measurements), start=1):
        say(f"without fold {number} of {GROUP_FOLDS}")
        by_fold.append(full.effects(_ran_elsewhere(ran)))
    families = {}
    for family in sorted({row.configuration.family for row in measurements}):
        say(f"without {family}")
        families[family] = full.effects(_outside_family(family))
    folds = {row.configuration.group: fold_of(row.configuration.group) for row in measurements}
    held_out = HeldOut(tuple(by_fold), families, folds)
    say("intervals from rows that were held out")
    intervals = fitted_intervals(measurements, held_out, taker)
    described = (
        f"{len(computing.rows)} rows and {len(scaling.rows)} pairs of "
        f"data/reference/measurements.csv.gz; {full.count} numbers that shrinking leaves as free "
        f"as {full.effective_count:.0f}; "
        f"intervals from {GROUP_FOLDS} folds of groups (near) and from leaving out each of "
        f"{len(families)} sources (far)"
    )
    jobs = [job_of(row.configuration) for row in computing.rows]
    fitted = Fitted(
        everything,
        intervals,
        described,
        frozenset(job.cluster.device.name for job in jobs),
        frozenset(job.framework.name for job in jobs),
    )
    return Refit(fitted, held_out)


class _Vectors:
    """Both fits; starts each held-out fit where the full one ended."""

    def __init__(self, scaling: ScalingFit, computing: ComputingFit) -> None:
        self._scaling = scaling
        self._computing = computing
        self._starts: tuple[FloatArray | None, FloatArray | None] = (None, None)
        self.effective_count = 0.0

    @property
    def count(self) -> int:
        """Constants and effects of both."""
        return len(self._scaling.parameters.prior) + len(self._computing.parameters.prior)

    def effects(self, keeps: Callable[[Configuration], bool]) -> Effects:
        """Effects fitted on the rows that ``keeps`` says yes to."""
        first = self._starts[0] is None
        iterations = 2 * _FURTHER_ITERATIONS if first else _FURTHER_ITERATIONS
        scaling = self._scaling.fitted(
            _weights(self._scaling.rows, keeps), self._starts[0], iterations
        )
        scaling_effects = self._scaling.parameters.effects(scaling.vector)
        computing = self._computing.fitted(
            scaling_effects, _weights(self._computing.rows, keeps), self._starts[1]
        )
        if first:
            self._starts = (scaling.vector, computing.vector)
            self.effective_count = scaling.effective_count + computing.effective_count
        return scaling_effects.combined(self._computing.parameters.effects(computing.vector))


def _teaches_scaling(case: Case) -> bool:
    """Whether a pair is of plain data parallelism."""
    if case.left_out or case.baseline is None:
        return False
    both = (case.measurement, case.baseline)
    return not any(takes_whole_step(job_of(row.configuration)) for row in both)


def _weights(rows: Sequence[Measurement], keeps: Callable[[Configuration], bool]) -> FloatArray:
    return np.array([1.0 if keeps(row.configuration) else 0.0 for row in rows])


def _ran_elsewhere(ran: Set[Configuration]) -> Callable[[Configuration], bool]:
    return lambda configuration: configuration.what_ran not in ran


def _outside_family(family: str) -> Callable[[Configuration], bool]:
    return lambda configuration: configuration.family != family
