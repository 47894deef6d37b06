"""Public function `validate`: score predictions on published measurements."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from paceline.render.files import check_writable, write_text
from paceline.render.result import Part, PublicResult
from paceline.render.terminal import prose
from paceline.units import plural
from paceline.validation.cases import Mode
from paceline.validation.hold_out import HoldOut, reference_rows
from paceline.validation.paceline_model import PacelineModel, PhysicsAlone
from paceline.validation.read_rows import MeasurementTable, read_tables
from paceline.validation.reference_data import layout_table, reference_table
from paceline.validation.row_filters import attribute_of
from paceline.validation.run_validation import answered_by_workers, predictions_csv
from paceline.validation.score_tables import mode_table, skipped_lines
from paceline.validation.validation_summary import ModeSummary, summarise

if TYPE_CHECKING:
    from paceline.parallel_map import Workers

MODES = ("baseline", "cold", "layout")
_REASONS = 8


@dataclass(frozen=True, repr=False)
class Validation(PublicResult, Mapping[Mode, ModeSummary]):
    """Scores by mode; ``table`` has the rows read, and those that are not usable."""

    schema: ClassVar[str] = "validation/2"
    summaries: Mapping[Mode, ModeSummary]
    table: MeasurementTable
    hold_out: str

    def __getitem__(self, mode: Mode) -> ModeSummary:
        return self.summaries[mode]

    def __iter__(self) -> Iterator[Mode]:
        return iter(self.summaries)

    def __len__(self) -> int:
        return len(self.summaries)

    def summary(self) -> str:
        """The number of rows and the modes."""
        return f"{plural(len(self.table.measurements), 'row')}: {', '.join(self.summaries)}"

    def parts(self) -> list[Part]:
        """Remarks, invalid rows, and a table of scores for each mode."""
        table = self.table
        notes = (f"note: {remark}" for remark in table.remarks)
        parts: list[Part] = [_filled(note, "") for note in notes]
        parts += self._problem_lines()
        if not table.measurements:
            return [*parts, "No rows to score."]
        published = reference_rows(table.measurements)
        parts.append(
            f"{published:,} of {plural(len(table.measurements), 'row')} published; corrections are "
            f"fitted without the {self.hold_out} of each row.\n"
        )
        for summary in self.summaries.values():
            lines = [_filled(line, "") for line in skipped_lines(summary, _REASONS)]
            lines += [_filled(text, "") for text in [summary.memory.text] if text]
            parts += [mode_table(summary), *lines, ""]
        return parts

    def to_dict(self) -> dict[str, Any]:
        """Scores of each mode, and rows that are not usable."""
        return {
            "rows": len(self.table.measurements),
            "rows_held_out": reference_rows(self.table.measurements),
            "unusable_rows": [asdict(problem) for problem in self.table.problems],
            "remarks": self.table.remarks,
            "held_out": self.hold_out,
            "modes": [summary.to_json() for summary in self.summaries.values()],
        }

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """One row per mode and model: its scores."""
        return [
            {"mode": str(mode), "model": name, **score.to_json()}
            for mode, summary in self.summaries.items()
            for name, score in summary.scores.items()
        ]

    def predictions_csv(self) -> str:
        """The prediction of each row as CSV; memory in GiB."""
        runs = [summary.run for summary in self.summaries.values()]
        return predictions_csv(runs, self.table.problems)

    def _problem_lines(self) -> list[str]:
        problems = self.table.problems
        if not problems:
            return []
        lines = [f"Skipped {plural(len(problems), 'invalid row')} (--json lists all):"]
        lines += [
            _filled(f"{one.file} line {one.line} ({one.id}): {one.reason}")
            for one in problems[:_REASONS]
        ]
        if len(problems) > _REASONS:
            counts = Counter(problem.reason for problem in problems)
            lines += [_filled(f"{count} x {why}") for why, count in counts.most_common(_REASONS)]
        return lines


def validate(
    files: Sequence[Path | str] = (),
    *,
    modes: Sequence[str] = MODES,
    by: Sequence[str] = (),
    hold_out: str = "group",
    workers: "Workers" = 1,
    predictions: Path | str | None = None,
    scoreboard: Path | str | None = None,
    on_row: Callable[[int, int], None] = lambda done, total: None,
    on_stage: Callable[[str], None] = lambda text: None,
) -> Validation:
    """Score predictions on published measurements, or on ``files`` in the same schema.

    Errors are relative errors of throughput. ``modes`` are baseline, cold and layout; ``by`` lists
    further columns to group by. The corrections for a row are fitted without its ``hold_out``: its
    own ``group``, or all rows with the same ``source``, ``generation``, ``framework``, ``model``,
    ``network`` or ``scale``. ``workers`` is a number of processes or the address of a cluster
    (tcp://host:8786 of Dask, ray://host:10001); the scores do not depend on it. ``predictions``
    names a CSV file for the prediction of each row, ``scoreboard`` a Markdown file.
    """
    for path in (predictions, scoreboard):
        if path is not None:
            check_writable(path)
    columns = [attribute_of(name) for name in by]
    table = read_tables(tuple(map(Path, files))) if files else reference_table()
    scored, null_models = PacelineModel(HoldOut(hold_out)), [PhysicsAlone()]
    rows, summaries = table.measurements, {}
    for mode in map(Mode, modes):
        on_stage(f"{mode}: {plural(len(rows), 'row')}")
        answered = answered_by_workers(scored, rows, mode, workers, on_row)
        summaries[mode] = summarise(rows, mode, answered, columns, on_row, null_models)
    found = Validation(summaries, table, hold_out)
    if predictions is not None:
        write_text(predictions, found.predictions_csv())
    if scoreboard is not None:
        _write_scoreboard(Path(scoreboard), on_stage)
    return found


def _write_scoreboard(path: Path, on_stage: Callable[[str], None]) -> None:
    from paceline.predictor.uncertainty.correction_table import shipped_corrections
    from paceline.validation.scoreboard import board, board_page

    found = board(reference_table().measurements, layout_table().measurements, on_stage)
    write_text(path, board_page(found, shipped_corrections().fitted_on))


def _filled(text: str, indent: str = "  ") -> str:
    return "\n".join(prose(f"{indent}{text}", "    "))
