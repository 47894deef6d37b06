"""The log reader interface, and the line parser that most readers use."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from paceline.importers.logs.parsing.log_builder import LogBuilder
from paceline.importers.logs.parsing.log_lines import LogLine
from paceline.importers.logs.parsing.parsed_log import ParsedLog


@runtime_checkable
class LogReader(Protocol):
    """Reads the log of one program.

    ``name`` is the value of ``--program``, ``title`` a description. ``sniff`` returns the
    confidence, from 0 to 1, that ``head`` (some thousand lines without rank prefixes) was written
    by the program. ``read`` accepts any sequence of lines, including damaged and foreign ones. It
    must not raise, must use bounded memory, and must count the lines it does not understand.
    Packages register readers under the entry point group ``paceline.readers``.
    """

    @property
    def name(self) -> str:
        """Value of ``--program``."""
        ...

    @property
    def title(self) -> str:
        """Description of the program."""
        ...

    def sniff(self, head: str) -> float:
        """Confidence, from 0 to 1, that ``head`` was written by the program."""
        ...

    def read(self, lines: Iterable[LogLine]) -> ParsedLog: ...


@dataclass(frozen=True)
class LineRule:
    """Function to apply to lines that match ``pattern``.

    A line that contains a ``needle`` but matches no pattern counts as damaged. A rule with an empty
    needle is tried on every line and never marks a line as damaged.
    """

    needle: str
    pattern: re.Pattern[str]
    apply: Callable[[re.Match[str], LogLine], None]


class LineParser:
    """State of one log: applies the rules to each line and counts lines without a match.

    Subclasses set ``program``, ``rules`` and ``ignored`` (known lines without figures) and may
    compute totals in `finish`.
    """

    program = ""
    ignored = re.compile(r"$")

    def __init__(self) -> None:
        self.log = LogBuilder(self.program)
        self.rules: Sequence[LineRule] = ()

    def parse(self, lines: Iterable[LogLine]) -> ParsedLog:
        for line in lines:
            self.log.lines += 1
            self.log.count_prefix(line)
            if not self.take(line):
                self.log.unread_lines += 1
        self.finish()
        return self.log.build()

    def take(self, line: LogLine) -> bool:
        """Read one line; False if it is damaged or foreign."""
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
        """Compute results that need the whole log."""

    def keep(
        self,
        needle: str,
        pattern: str,
        name: str,
        convert: Callable[[str], object] = lambda text: text[:100],
    ) -> LineRule:
        """Rule that sets an attribute of the log, of the parser or a fact to group 1.

        Texts that ``convert`` makes None or zero are ignored.
        """

        def apply(match: re.Match[str], line: LogLine) -> None:
            value = convert(match[1])
            if not value:
                return
            if hasattr(self, name):
                setattr(self, name, value)
            elif hasattr(self.log, name):
                setattr(self.log, name, value)
            else:
                self.log.facts[name] = value if isinstance(value, str) else float(str(value))

        return LineRule(needle, re.compile(pattern), apply)

    def end(self, match: re.Match[str], line: LogLine) -> None:
        """Rule action for the last line of a completed run."""
        self.log.finished = True

    def skip(self, match: re.Match[str], line: LogLine) -> None:
        """Rule action for known lines without figures."""


@dataclass(frozen=True)
class ProgramReader:
    """A `LogReader` that consists of marks to recognise the program and a line parser.

    ``marks`` are texts and the confidence that each adds; marks of similar programs have negative
    confidence. ``look`` computes further confidence from ``head``.
    """

    name: str
    title: str
    marks: tuple[tuple[str, float], ...]
    parser: Callable[[], LineParser]
    look: Callable[[str], float] = lambda head: 0.0

    def sniff(self, head: str) -> float:
        """Sum of the confidence of all marks in ``head``, limited to 0..1."""
        confidence = sum(weight for mark, weight in self.marks if mark in head) + self.look(head)
        return min(1.0, max(0.0, confidence))

    def read(self, lines: Iterable[LogLine]) -> ParsedLog:
        return self.parser().parse(lines)
