"""The demo's study: every kind of launch that predicting and explaining two processes needs."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from paceline import __version__
from paceline.measurement.environment import load_average, machine_fingerprint
from paceline.measurement.probe import current_profile, probe_machine
from paceline.report.tables.profile import profile_words
from paceline.study.settings import StudySettings
from paceline.study.study import Study

if TYPE_CHECKING:
    from paceline.measurement.study import Design

PROCESSES = 2


class Demonstration(Study):
    """Plain launches on one and two processes and co-located ones, and one timed of each kind.

    ``out`` is the directory of its store.
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
        """Probe the machine unless a recent profile is there; what is known of it in one line."""
        with self.open(create=True) as store:
            profile = current_profile(store)
            if profile is None or PROCESSES not in profile.all_reduce:
                profile = probe_machine(store, (PROCESSES,), on_stage=on_stage)
        return profile_words(profile, PROCESSES)


class DemonstrationSettings(StudySettings):
    """Settings whose jobs are those five kinds, the timed ones launched once."""

    def design(self, run_here: bool = True) -> "Design":
        """The five kinds of launches in shuffled blocks."""
        from paceline.measurement.study import Design

        (alone,) = self.jobs(run_here)
        together = replace(alone, world_size=PROCESSES)
        kinds = [
            alone,
            replace(together, synchronise=False),
            together,
            replace(alone, instrument="layers"),
            replace(together, instrument="phases"),
        ]
        counts = [self.launches] * 3 + [1, 1]
        return Design.randomised(kinds, counts, self.seed)


def machine_words() -> str:
    """Paceline's version, the machine and its load, in one line."""
    return f"Paceline {__version__}  ·  {machine_fingerprint()}  ·  load {load_average():.1f}"
