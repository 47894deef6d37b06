"""Study of the demo: all launches needed to predict and explain two processes."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from paceline import __version__
from paceline.analysis.launch_tables import warnings_of
from paceline.calibration.calibration_tables import comparison_table, describe_profile
from paceline.errors import PacelineError
from paceline.explanation.explanation_tables import level_lines, parts_table, verdict_of
from paceline.measurement.environment import load_average, machine_fingerprint
from paceline.measurement.probe.machine_probe import current_profile, probe_machine
from paceline.render.result import Part, PublicResult
from paceline.report.study_analysis import StudyAnalysis
from paceline.report.study_json import study_json
from paceline.study.study import Study
from paceline.study.study_settings import StudySettings
from paceline.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from paceline.measurement.study_runner import Design

PROCESSES = 2


class Demonstration(Study):
    """Plain launches on one and two processes, co-located ones, and one that times messages.

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

    There are twice as many synchronised launches, since their intervals decide which causes are
    shown. One launch times layers, one messages.
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
        counts = [self.launches, self.launches, 2 * self.launches, 1, 1]
        return Design.randomised(kinds, counts, self.seed)


@dataclass(frozen=True, repr=False)
class DemoResult(PublicResult):
    """The analysis of the demo and its report."""

    schema: ClassVar[str] = "demo/1"
    study: str
    store: Path
    analysis: StudyAnalysis
    report: Path

    def warnings(self) -> list[str]:
        """Doubtful results, and launches without results."""
        return warnings_of(self.analysis.launches)

    def summary(self) -> str:
        """The study and its report."""
        return f"{self.study}, report in {self.report}"

    def parts(self) -> list[Part]:
        """Predictions and measurements, the breakdown of the step, and the best bucket size."""
        found = self.analysis
        explanation, calibration, profile = found.explanation, found.calibration, found.profile
        alone = None if explanation is None else explanation.alone
        if explanation is None or alone is None or not (calibration and profile and found.here):
            raise PacelineError(
                "too few launches finished for a comparison",
                "run 'paceline study show' for the reasons",
            )
        prediction = found.here[0].prediction
        size, gain = calibration.best_bucket(profile, PROCESSES, prediction)
        share = gain / prediction.step_seconds
        bucket = "No other bucket size shortens the step by more than 0.2 %."
        if share > 0.002:
            bucket = (
                f"Best bucket size: {format_bytes(size)} would hide {format_seconds(gain)} of the "
                f"all-reduce ({share:.1%} of the step)."
            )
        table = comparison_table(alone, [*found.here, *found.elsewhere])
        verdict = f"Verdict: {verdict_of(explanation)}"
        lines = [*level_lines(explanation), verdict, bucket, f"Report: {self.report}"]
        return ["", table, "", parts_table(explanation), *lines]

    def to_dict(self) -> dict[str, Any]:
        """The facts of the report, and its path."""
        return {**study_json(self.analysis), "report": str(self.report)}


def describe_machine() -> str:
    """Paceline's version, the machine and its load, in one line."""
    return f"Paceline {__version__}  ·  {machine_fingerprint()}  ·  load {load_average():.1f}"
