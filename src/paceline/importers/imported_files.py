"""Read files for import: each log separately, the traces of all ranks together."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from paceline.errors import InputError
from paceline.importers.import_launches import (
    UserFacts,
    contradictions_of,
    launch_of_log,
    launch_of_trace,
)
from paceline.importers.logs import ParsedLog, read_log, readers
from paceline.importers.traces import (
    ParsedTrace,
    is_layer_trace,
    read_trace,
    trace_format,
    trace_formats,
)
from paceline.naming import unknown_name
from paceline.store import Launch


@dataclass(frozen=True)
class Imported:
    """One log, or one trace of one or several files."""

    source: Path
    content: ParsedLog | ParsedTrace

    def warnings(self, given: UserFacts) -> list[str]:
        """Warnings of the reader, and differences between the user's facts and the file."""
        differences = (
            contradictions_of(given, self.content) if isinstance(self.content, ParsedLog) else []
        )
        return [*self.content.warnings, *differences]

    def launch(self, study: str, given: UserFacts) -> Launch | None:
        """The launch; None for files without training steps (collective benchmarks, start-up)."""
        if isinstance(self.content, ParsedTrace):
            if self.content.steps and not self.content.training_steps:
                return None
            return launch_of_trace(self.content, self.source, study, given)
        if self.content.collectives and not self.content.steps:
            return None
        return launch_of_log(self.content, self.source, study, given)


def read_files(
    paths: Sequence[Path],
    program: str | None,
    series: str = "",
    on_file: Callable[[Path], None] = lambda path: None,
) -> list[Imported]:
    traces = [path for path in paths if _is_trace(path, program)]
    found = []
    for path in paths:
        if path not in traces:
            on_file(path)
            found.append(Imported(path, _read_log(path, program, series)))
    if traces:
        for path in traces:
            on_file(path)
        found.append(Imported(traces[0], read_trace(traces, program)))
    return found


def _is_trace(path: Path, program: str | None) -> bool:
    """Whether a file is a trace; several programs write both logs and traces."""
    if path.is_dir():
        return True
    if program is not None and program not in readers():
        if program not in (known := trace_formats()):
            both = sorted({*readers(), *known})
            raise unknown_name("program", program, both, f"known: {', '.join(both)}")
        return True
    return trace_format(path) is not None


def _read_log(path: Path, program: str | None, series: str) -> ParsedLog:
    if program is None and is_layer_trace(path):
        raise InputError(
            f"{path} is a layer-wise trace, which cannot be imported as a launch",
            f"replay it with: paceline predict --trace {path} --nodes 8 --link eth_10g",
        )
    return read_log(path, program, series)
