"""All errors of a file at once, each with its line."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from paceline.errors import InputError, PacelineError
from paceline.located_toml import TablePath, TomlTable, line_of


@dataclass(frozen=True)
class FileProblem:
    """One error of a file; ``line`` is None if it concerns the whole file."""

    line: int | None
    message: str
    hint: str


class FileError(InputError):
    """All errors of a file; ``message`` and ``hint`` are those of the first."""

    def __init__(self, file: str, problems: Sequence[FileProblem]) -> None:
        located = []
        for one in sorted(dict.fromkeys(problems), key=lambda one: one.line or 0):
            where = f"{file}, line {one.line}" if one.line else file
            located.append((f"{where}: {one.message}", one.hint))
        super().__init__(*located[0])
        self.problems = located

    def __str__(self) -> str:
        return "\n".join(message for message, _ in self.problems)


class Problems:
    """Collects the errors of a file::

    problems = Problems(root)
    with problems.at("cluster", "lab", "device"):
        catalogue.device(name)
    problems.check()
    """

    def __init__(self, root: TomlTable) -> None:
        self._root = root
        self._found: list[FileProblem] = []

    def __len__(self) -> int:
        return len(self._found)

    def add(self, path: Sequence[str | int], message: str, hint: str) -> None:
        """Add an error at a key or a table."""
        self._found.append(FileProblem(self._line(tuple(path)), message, hint))

    @contextmanager
    def at(self, *path: str | int, label: str = "") -> Iterator[None]:
        """Collect an error raised in the block, at this key; ``label`` precedes its message."""
        try:
            yield
        except FileError:
            raise
        except PacelineError as error:
            self.add(path, f"{label}{error.message}", error.hint)

    def check(self) -> None:
        """Raise a `FileError` if there are errors."""
        if self._found:
            raise FileError(self._root.file, self._found)

    def _line(self, path: TablePath) -> int | None:
        """The line of the longest part of a path that the text contains."""
        for end in range(len(path), 0, -1):
            table, last = path[: end - 1], path[end - 1]
            key = last if isinstance(last, str) else None
            line = line_of(self._root.text, table if key else path[:end], key)
            if line is not None:
                return line
        return None
