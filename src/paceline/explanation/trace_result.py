"""Result of `trace`: the analysis of a trace, printed as tables."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from paceline.explanation import trace_tables as tables
from paceline.explanation.trace_analysis import TraceAnalysis
from paceline.render.result import Part, PublicResult
from paceline.render.step_tables import difference_tables, ranks_table
from paceline.step import Step
from paceline.step.difference import StepDifference
from paceline.units import plural


@dataclass(frozen=True, repr=False)
class TraceResult(PublicResult, TraceAnalysis):
    """A `TraceAnalysis` with its difference from another trace and the files written."""

    schema: ClassVar[str] = "trace/1"
    difference: StepDifference | None = None
    files: tuple[tuple[str, Path], ...] = ()

    def parts(self) -> list[Part]:
        """Verdict, levels, phases by rank, operations, messages, gains of fixes, and files."""
        optional = (tables.groups_table(self), tables.remedies_table(self))
        levels = tables.levels_table(self)
        parts: list[Part] = [*tables.trace_lines(self), *([levels] if levels else [])]
        parts += [ranks_table(self.profile), tables.operations_table(self)]
        parts += [*tables.messages_lines(self.profile), *(one for one in optional if one)]
        if self.difference is not None:
            parts += difference_tables(self.difference, "against", "this trace")
        return [*parts, *(f"{kind}: {path}" for kind, path in self.files)]

    def warnings(self) -> list[str]:
        """Doubts of the reader, and entries that it skipped."""
        lines = [f"warning: {text}" for text in self.trace.warnings]
        if self.trace.unread:
            lines.append(f"warning: skipped {plural(self.trace.unread, 'unreadable entry')}")
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Phases, messages and gains in seconds."""
        document = tables.trace_json(self)
        if self.difference is not None:
            document["difference"] = asdict(self.difference)
        return document


def write_trace_files(step: Step, targets: Mapping[str, Path]) -> None:
    """Write a step as a Chrome trace, an OTF2 archive or a heat map."""
    from paceline.importers.traces.otf2_archive import write_otf2
    from paceline.render.figure_files.figure_files import write_drawing
    from paceline.render.figures.drawing import draw
    from paceline.render.figures.heatmap import heatmap_info
    from paceline.render.files import write_text
    from paceline.step.serialise import chrome_trace

    for kind, path in targets.items():
        match kind:
            case "Chrome trace":
                write_text(path, chrome_trace(step))
            case "OTF2":
                write_otf2(step, path)
            case _:
                write_drawing(path, draw(heatmap_info(step)), "")
