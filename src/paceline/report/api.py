"""Public function write_report: the HTML report of a study."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from paceline.naming import file_name
from paceline.render.result import Part, PublicResult
from paceline.report.study_analysis import StudyAnalysis
from paceline.report.study_json import study_json
from paceline.topology import PREDICTED_LINK, PREDICTED_NODES
from paceline.units import plural

if TYPE_CHECKING:
    from paceline.study import Study


@dataclass(frozen=True, repr=False)
class WrittenReport(PublicResult):
    """The analysis of a study, and the files written."""

    schema: ClassVar[str] = "report/1"
    analysis: StudyAnalysis
    report: Path
    figures: tuple[Path, ...] = ()

    def parts(self) -> list[Part]:
        """The page, and the directory of figures."""
        parts: list[Part] = [f"Report: {self.report}"]
        if self.figures:
            count, folder = plural(len(self.figures), "file"), self.figures[0].parent
            parts.append(f"Figures: {count} in {folder}; figures.tex, methods.tex and paceline.bib")
        return parts

    def to_dict(self) -> dict[str, Any]:
        """The facts of the report, and its files."""
        written = {"report": str(self.report), "figures": [str(path) for path in self.figures]}
        return {**study_json(self.analysis), **written}


def write_report(
    study: "Study | str",
    *,
    out: Path | str | None = None,
    figures: Path | str | None = None,
    nodes: Sequence[int] = PREDICTED_NODES,
    link: str = PREDICTED_LINK,
    store: Path | str | None = None,
) -> WrittenReport:
    """Write a self-contained HTML report of a study to ``out`` [STUDY.html].

    ``figures`` is a directory for the figures as SVG, PDF and PNG. Larger clusters are predicted
    for ``nodes`` connected by ``link``.
    """
    from paceline.study import Study

    found = study if isinstance(study, Study) else Study.load(study, store)
    analysis = found.analyse(nodes, link)
    page = found.report(out or Path(f"{file_name(found.name)}.html"), analysis=analysis)
    drawn = found.figures(figures, analysis=analysis) if figures is not None else []
    return WrittenReport(analysis, page, tuple(drawn))
