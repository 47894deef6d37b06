"""Public functions read_log and import_launches."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from paceline.errors import InputError
from paceline.importers.import_launches import UserFacts
from paceline.importers.import_tables import imported_json, imported_parts
from paceline.importers.imported_files import Imported, read_files
from paceline.render.result import Part, PublicResult
from paceline.store import Launch, Store, default_store_path

NO_FACTS = UserFacts()


@dataclass(frozen=True, repr=False)
class ImportedLaunches(PublicResult):
    """Contents of logs and traces, and the launches made of them.

    ``missing`` says which facts must be given before the files can be imported.
    """

    schema: ClassVar[str] = "import/1"
    files: tuple[Imported, ...]
    facts: UserFacts = NO_FACTS
    launches: tuple[Launch, ...] = ()
    recorded: bool = False
    missing: str = ""

    def parts(self) -> list[Part]:
        """A summary of each file, and the recorded launches."""
        parts: list[Part] = [part for one in self.files for part in imported_parts(one)]
        if self.missing:
            parts.append(f"missing facts: {self.missing}")
        elif self.recorded and self.launches:
            parts.append(f"Recorded: {', '.join(launch.id for launch in self.launches)}")
        elif self.recorded:
            parts.append("The files contain no launch; nothing was recorded.")
        return parts

    def warnings(self) -> list[str]:
        """Warnings of the readers, and facts that contradict the files."""
        return [f"warning: {text}" for one in self.files for text in one.warnings(self.facts)]

    def to_dict(self) -> dict[str, Any]:
        """Contents of each file, and ids of recorded launches."""
        ids = [launch.id for launch in self.launches] if self.recorded else []
        return {"files": [imported_json(one) for one in self.files], "launches": ids}


def read_log(
    files: Sequence[Path | str] | Path | str, *, program: str | None = None, series: str = ""
) -> ImportedLaunches:
    """Contents of logs and traces of other programs, without recording them.

    Trace files given together are the ranks of one launch. ``program`` names the program that
    wrote the files [detected]; ``series`` selects the training series of a log that has several by
    a part of its line.
    """
    return ImportedLaunches(tuple(read_files(_paths(files), program, series)))


def import_launches(
    files: Sequence[Path | str] | Path | str,
    *,
    program: str | None = None,
    series: str = "",
    model: str = "",
    batch: int | None = None,
    nodes: int | None = None,
    ranks: int | None = None,
    precision: str = "",
    study: str | None = None,
    dry_run: bool = False,
    store: Path | str | None = None,
    on_file: Callable[[Path], None] = lambda path: None,
) -> ImportedLaunches:
    """Record logs and traces of other programs as launches, with provenance "imported".

    Facts that the files do not contain must be given: ``model``, ``batch`` (samples per process),
    ``nodes`` and ``ranks`` of the job, ``precision``. ``series`` selects the training series of a
    log that has several by a part of its line. ``study`` is the name of the first file by default.
    With ``dry_run`` nothing is recorded.
    """
    paths = _paths(files)
    facts = UserFacts(model, batch, ranks, nodes, precision)
    found = tuple(read_files(paths, program, series, on_file))
    try:
        made = [one.launch(study or paths[0].stem, facts) for one in found]
    except InputError as error:
        if not dry_run:
            raise
        return ImportedLaunches(found, facts, missing=f"{error.message}; {error.hint}")
    launches = tuple(launch for launch in made if launch is not None)
    if launches and not dry_run:
        with Store(Path(store) if store is not None else default_store_path()) as opened:
            for launch in launches:
                opened.complete(launch)
    return ImportedLaunches(found, facts, launches, recorded=not dry_run)


def _paths(files: Sequence[Path | str] | Path | str) -> list[Path]:
    return [Path(files)] if isinstance(files, Path | str) else [Path(file) for file in files]
