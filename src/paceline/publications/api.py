"""Public function `reproduce`: published studies, predicted and repeated on this machine."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from paceline.errors import InputError
from paceline.publications.predict_studies import chosen_studies, reproduced
from paceline.publications.reproduction_result import MeasuredResult, ReproductionResult
from paceline.publications.reproduction_tables import (
    reproduction_json,
    reproduction_parts,
    summary_table,
)
from paceline.render.result import Part, PublicResult
from paceline.render.terminal import prose

if TYPE_CHECKING:
    from paceline.measurement.study_runner import Progress

DEFAULT_SITE = Path("five-studies")


def _ignore(_: object) -> None:
    """The default of callbacks."""


@dataclass(frozen=True, repr=False)
class ReproducedStudies(PublicResult):
    """Published and predicted values of each study; ``index`` is the page of measured ones."""

    schema: ClassVar[str] = "reproduce/2"
    studies: tuple[ReproductionResult, ...]
    index: Path | None = None

    def __iter__(self) -> Iterator[ReproductionResult]:
        return iter(self.studies)

    def __len__(self) -> int:
        return len(self.studies)

    @property
    def measured(self) -> list[tuple[ReproductionResult, MeasuredResult]]:
        """Each part that was measured here, with its study."""
        return [(one, part) for one in self.studies for part in one.measured]

    def summary(self) -> str:
        """The letters of the studies."""
        return f"studies {', '.join(one.reproduction.study.letter for one in self.studies)}"

    def parts(self) -> list[Part]:
        """The figures of each study, or the local measurements, and a summary."""
        from paceline.publications.site.site_pages import answers, measured_table

        found = [one.reproduction for one in self.studies]
        if self.index is None:
            parts = [part for one in found for part in (*reproduction_parts(one), "")]
            return [*parts, summary_table(found)]
        texts = answers(self.measured)
        lines = [line for text in texts for line in prose(text, "   ")]
        missing = {name: hint for _, part in self.measured for name, hint in part.missing.items()}
        return [
            measured_table(self.measured),
            "",
            *lines,
            "",
            summary_table(found),
            *(f"omitted: {name} is not installed; {hint}" for name, hint in missing.items()),
            f"Pages: {self.index}",
        ]

    def to_dict(self) -> dict[str, Any]:
        """Values in the unit of their figure, and measured parts."""
        document = reproduction_json([one.reproduction for one in self.studies])
        if self.index is None:
            return document
        measured = [
            {
                "study": one.reproduction.study.name,
                "part": part.part.what,
                "name": part.study,
                "launches": 0 if part.analysis is None else len(part.analysis.launches),
                "missing_frameworks": dict(part.missing),
                "reason": part.reason,
            }
            for one, part in self.measured
        ]
        return {**document, "measured": measured, "site": str(self.index)}

    def rows(self) -> Sequence[dict[str, Any]]:
        """One row per published value."""
        studies = reproduction_json([one.reproduction for one in self.studies])["studies"]
        return [{"study": one["name"], **point} for one in studies for point in one["points"]]


def reproduce(
    names: str | Sequence[str] = (),
    *,
    run: bool = False,
    site: Path | str | None = None,
    short: bool = False,
    store: Path | str | None = None,
    on_stage: Callable[[str], None] = _ignore,
    on_launch: "Callable[[Progress], None]" = _ignore,
) -> ReproducedStudies:
    """Predict the results of published studies, each curve from its smallest point.

    ``names`` are names or letters of studies [all]. Published values, and predicted values with
    90 % intervals, are in the unit of the figure. With ``run`` the designs are also measured on
    this machine, scaled to its size, with fewer launches if ``short``; the same call continues
    after an interruption. ``site`` is a directory for HTML pages [five-studies with ``run``], which
    are written from the launches in ``store``.
    """
    from paceline.publications.run_studies import INDEX, run_studies, studies_so_far

    if not run and site is None:
        if short or store is not None:
            raise InputError(
                "--short and --store require --run or --site", "add --run or --site DIRECTORY"
            )
        return ReproducedStudies(
            tuple(ReproductionResult(reproduced(study)) for study in chosen_studies(names))
        )
    pages = Path(site) if site is not None else DEFAULT_SITE
    if run:
        found = run_studies(
            names, store=store, short=short, site=pages, on_stage=on_stage, on_launch=on_launch
        )
    else:
        found = studies_so_far(names, store=store, short=short, site=pages, on_stage=on_stage)
    return ReproducedStudies(tuple(found), pages / INDEX)
