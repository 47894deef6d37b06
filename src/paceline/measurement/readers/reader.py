"""The contract of a log reader, and the line-by-line parser that most of them are made of."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from paceline.measurement.readers.builder import LogBuilder
from paceline.measurement.readers.lines import LogLine
from paceline.measurement.readers.parsed_log import ParsedLog


@runtime_checkable
class LogReader(Protocol):
    """Reads the log of one program.

    ``name`` is what a user types, ``title`` what a person reads. ``sniff`` says how sure it is,
    from 0 to 1, that ``head`` (some thousand lines, without rank prefixes) is its program's.
    ``read`` must take any sequence of lines, damaged or foreign ones too, raise nothing, keep
    memory bounded, and count the lines it cannot use. Third parties register one under the
    entry point group ``paceline.readers``.
    """

    @property
    def name(self) -> str:
        """What a user types."""
        ...

    @property
    def title(self) -> str:
        """The program as a person calls it."""
        ...

    def sniff(self, head: str) -> float:
        """How sure the reader is that ``head`` is its program's, from 0 to 1."""
        ...

    def read(self, lines: Iterable[LogLine]) -> ParsedLog:
        """What the lines tell."""
        ...


@dataclass(frozen=True)
class LineRule:
    """What to do with a line that matches ``pattern``.

    A line that holds ``needle`` but matches no rule's pattern is a damaged one; an empty needle
    means a pattern that is tried on every line and proves nothing when it fails.
    """

    needle: str
    pattern: re.Pattern[str]
    apply: Callable[[re.Match[str], LogLine], None]


class LineParser:
    """State of one log being read: tries the rules on each line, counts what none takes.

    Subclasses set ``program``, ``rules`` and ``ignored`` (lines that are the program's but carry
    no figure) and may work out totals in `finish`.
    """

    program = ""
    ignored = re.compile(r"$")

    def __init__(self) -> None:
        self.log = LogBuilder(self.program)
        self.rules: Sequence[LineRule] = ()

    def parse(self, lines: Iterable[LogLine]) -> ParsedLog:
        """Read every line, then close the log."""
        for line in lines:
            self.log.lines += 1
            if line.rank is not None:
                self.log.highest_rank = max(line.rank, self.log.highest_rank or 0)
                self.log.ranked_lines += 1
            if not self.take(line):
                self.log.unread_lines += 1
        self.finish()
        return self.log.build()

    def take(self, line: LogLine) -> bool:
        """Use one line; False when it cannot be read."""
        damaged = False
        for rule in self.rules:
            if rule.needle in line.text:
                match = rule.pattern.search(line.text)
                if match is not None:
                    rule.apply(match, line)
                    return True
                damaged = damaged or bool(rule.needle)
        return not damaged and (not line.text or self.ignored.match(line.text) is not None)

    def finish(self) -> None:
        """Work out what only the whole log tells."""

    def end(self, match: re.Match[str], line: LogLine) -> None:
        """For rules about the line that a program writes when it has come to its end."""
        self.log.finished = True

    def skip(self, match: re.Match[str], line: LogLine) -> None:
        """For rules about lines that are understood and carry no figure."""


@dataclass(frozen=True)
class ProgramReader:
    """A `LogReader` made of marks to know the program by and a parser for its lines.

    ``marks`` are texts with the confidence that each adds when it occurs; a mark of a close
    relative takes confidence away. ``look`` adds its own where a text does not tell.
    """

    name: str
    title: str
    marks: tuple[tuple[str, float], ...]
    parser: Callable[[], LineParser]
    look: Callable[[str], float] = lambda head: 0.0

    def sniff(self, head: str) -> float:
        """Sum of the marks found, from 0 to 1."""
        confidence = sum(weight for mark, weight in self.marks if mark in head) + self.look(head)
        return min(1.0, max(0.0, confidence))

    def read(self, lines: Iterable[LogLine]) -> ParsedLog:
        """What the lines tell."""
        return self.parser().parse(lines)
