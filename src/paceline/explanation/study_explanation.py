"""Results of `explain` and `utilisation`: waterfall, findings, MFU, missing measurements."""

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from paceline.explanation import explanation_tables as tables
from paceline.explanation.explain_step import Explanation
from paceline.explanation.tried_remedy import TriedRemedy
from paceline.explanation.utilisation import Utilisation
from paceline.explanation.utilisation_tables import utilisation_parts
from paceline.render.result import Part, PublicResult
from paceline.render.step_tables import difference_tables
from paceline.step.difference import StepDifference


@dataclass(frozen=True, repr=False)
class StudyExplanation(PublicResult, Explanation):
    """An `Explanation` of a study, with its step compared with another one and its MFU if asked."""

    schema: ClassVar[str] = "explain/2"
    study: str = ""
    against: str = ""
    difference: StepDifference | None = None
    utilisation: Utilisation | None = None
    tried: tuple[TriedRemedy, ...] = ()

    def summary(self) -> str:
        """The configuration and the verdict."""
        return f"{tables.explanation_title(self)}: {tables.verdict_of(self)}"

    def parts(self) -> list[Part]:
        """Verdict, parts, findings, phases by rank, missing measurements, MFU and difference."""
        phases = tables.phases_table(self)
        parts: list[Part] = [tables.explanation_title(self), tables.verdict_of(self), ""]
        parts += [tables.parts_table(self), *tables.level_lines(self)]
        parts += [*tables.instrumented_lines(self), *tables.finding_lines(self)]
        parts += [*([phases] if phases else []), *tables.missing_lines(self)]
        parts += [one.describe() for one in self.tried]
        if self.utilisation is not None:
            parts += utilisation_parts(self.utilisation)
        if self.difference is not None:
            parts += difference_tables(self.difference, self.against, self.study)
        return parts

    def to_dict(self) -> dict[str, Any]:
        """The waterfall in seconds, findings, ranks and missing measurements."""
        document = {"study": self.study, **tables.explanation_json(self)}
        if self.difference is not None:
            document["difference"] = asdict(self.difference)
        if self.tried:
            document["tried"] = [
                {
                    "try": one.remedy,
                    "command": list(one.command),
                    "predicted_seconds": one.predicted_seconds,
                    "measured_seconds": one.measured_seconds,
                    "half_width_seconds": tables.finite(one.half_width),
                    "step_seconds": one.step_seconds,
                }
                for one in self.tried
            ]
        if self.utilisation is not None:
            document["utilisation"] = asdict(self.utilisation)
        return document


@dataclass(frozen=True, repr=False)
class StudyUtilisation(PublicResult, Utilisation):
    """The MFU of a study, from peak to achieved, with the nearest published rows."""

    schema: ClassVar[str] = "utilisation/1"

    def summary(self) -> str:
        """Achieved and predicted MFU."""
        return f"{self.job}: MFU {self.achieved:.1%}, predicted {self.predicted:.1%}"

    def parts(self) -> list[Part]:
        """Tables of MFU and of published rows."""
        return list(utilisation_parts(self))
