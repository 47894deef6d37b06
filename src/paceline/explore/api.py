"""Public functions serve_explorer and export_pages: the explorer, and the pages of a study."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from paceline.errors import InputError, MissingExtraError
from paceline.render.result import PublicResult
from paceline.store import Store, default_store_path
from paceline.units import plural

DEFAULT_PORT = 8017


@dataclass(frozen=True, repr=False)
class ExportedPages(PublicResult):
    """Files of a study for a browser."""

    schema: ClassVar[str] = "export-site/1"
    study: str
    files: tuple[Path, ...]

    def parts(self) -> list[str]:
        """The number of files and the first page."""
        written = plural(len(self.files), "file")
        return [f"{self.study}: wrote {written}; open {self.files[0]}"]

    def to_dict(self) -> dict[str, object]:
        """The study and the paths of its files."""
        return {"study": self.study, "files": [str(one) for one in self.files]}


def serve_explorer(
    *,
    port: int = DEFAULT_PORT,
    store: Path | str | None = None,
    opens_browser: bool = True,
    on_start: Callable[[str], None] = print,
) -> None:
    """Serve the explorer on the loopback interface until Ctrl-C; ``port`` 0 is any free one.

    ``on_start`` receives the line with the address.
    """
    try:
        from paceline.explore.server import serve
        from paceline.explore.studies import MeasuredStudies
    except ImportError:
        raise MissingExtraError(
            "the explorer needs Starlette and uvicorn", "pip install 'paceline[web]'"
        ) from None
    studies = MeasuredStudies(Path(store or default_store_path()))
    serve(port, on_start, studies, opens_browser=opens_browser)


def export_pages(
    directory: Path | str, *, study: str | None = None, store: Path | str | None = None
) -> ExportedPages:
    """Write the pages, the report and the tables of a study [the newest] to ``directory``."""
    from paceline.explore.study_view import export_study
    from paceline.study import Study

    path = Path(store or default_store_path())
    if study is None:
        with Store(path, create=False) as opened:
            newest = opened.launches(newest=1)
        if not newest:
            raise InputError(f"the store '{path}' is empty", "run 'paceline measure' first")
        study = newest[0].study
    written = export_study(Study.load(study, path), Path(directory))
    return ExportedPages(study, tuple(written))
