"""A finished study as static files: its page, report and tables."""

import io
from pathlib import Path
from typing import TYPE_CHECKING

from paceline.explore.study_view import study_document, study_html
from paceline.render.files import write_bytes, write_text
from paceline.store.tidy_tables import tidy_rows, to_csv

if TYPE_CHECKING:
    from paceline.study import Study

TABLES = ("launches", "steps")


def export_study(study: "Study", directory: Path) -> list[Path]:
    """Write ``index.html``, ``report.html`` and CSV tables; return the paths."""
    launches = study.launches
    document = study_document(study.name, launches)
    written = [
        write_text(directory / "index.html", study_html(document, back="report.html")),
        study.report(directory / "report.html"),
    ]
    for table in TABLES:
        content = io.BytesIO()
        to_csv(tidy_rows(table, launches), content)
        written.append(write_bytes(directory / f"{table}.csv", content.getvalue()))
    return written
