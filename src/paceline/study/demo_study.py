"""Study of the demo: all launches needed to predict and explain two processes."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from paceline import __version__
from paceline.calibration.profile_tables import describe_profile
from paceline.measurement.environment import load_average, machine_fingerprint
from paceline.measurement.probe.machine_probe import current_profile, probe_machine
from paceline.study.study import Study
from paceline.study.study_settings import StudySettings

if TYPE_CHECKING:
    from paceline.measurement.study_runner import Design

PROCESSES = 2


class Demonstration(Study):
    """Plain launches on one and two processes, co-located ones, and instrumented ones.

    ``out`` is the directory of the store.
    """

    def __init__(
        self, model: str, *, batch: int, launches: int, steps: int, seed: int, out: Path
    ) -> None:
        settings = DemonstrationSettings(
            model, batch, launches=launches, steps=steps, warmup_steps=2, seed=seed
        )
        settings.design()
        super().__init__(settings, store=out / "paceline.db")

    def probe(self, on_stage: Callable[[str], None]) -> str:
        """Probe the machine unless it has a recent profile; describe the profile in one line."""
        with self.open(create=True) as store:
            profile = current_profile(store)
            if profile is None or PROCESSES not in profile.all_reduce:
                profile = probe_machine(store, (PROCESSES,), on_stage=on_stage)
        return describe_profile(profile, PROCESSES)


class DemonstrationSettings(StudySettings):
    """Settings with these five kinds of jobs.

    There are twice as many synchronised instrumented launches as plain ones, since their intervals
    decide which causes are shown. One launch times layers.
    """

    def design(self, run_here: bool = True) -> "Design":
        """Design with the five kinds of launches in shuffled blocks."""
        from paceline.measurement.study_runner import Design

        (alone,) = self.jobs(run_here)
        together = replace(alone, world_size=PROCESSES)
        kinds = [
            alone,
            replace(together, synchronise=False),
            together,
            replace(alone, instrument="layers"),
            replace(together, instrument="phases"),
        ]
        counts = [self.launches] * 3 + [1] + [self.launches] * 2
        design = Design.randomised([*kinds, kinds[-1]], counts, self.seed)
        order = tuple(min(index, len(kinds) - 1) for index in design.order)
        return replace(design, jobs=tuple(kinds), order=order)


def describe_machine() -> str:
    """Paceline's version, the machine and its load, in one line."""
    return f"Paceline {__version__}  ·  {machine_fingerprint()}  ·  load {load_average():.1f}"
