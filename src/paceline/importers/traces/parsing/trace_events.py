"""Events of a Chrome trace (JSON), streamed from files that may be huge or truncated."""

import codecs
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paceline.importers.logs.parsing.log_lines import read_chunks

LONGEST_EVENT = 1 << 17
LONGEST_HEADER = 1 << 22
DEEP_NESTING_SKIP = 1 << 14
LARGEST_MICROSECONDS = 1e18

_ARRAY = re.compile(r'"traceEvents"\s*:\s*\[')
_NEXT_OBJECT = re.compile(r'\{\s*"')
_SEPARATOR = re.compile(r"[\s,]*")


@dataclass(slots=True)
class ChromeEvent:
    """One event: ``phase`` is its letter (B, E, X, M, i, ...), times in microseconds."""

    phase: str
    name: str
    category: str
    process: str
    thread: str
    start: float
    duration: float
    arguments: dict[str, Any]


class ChromeTrace:
    """Single-pass iterator over the events of one file.

    ``header`` is the text before the array of events, ``unread`` counts damaged events.
    """

    def __init__(self, path: Path) -> None:
        self.header = ""
        self.unread = 0
        self._chunks = read_chunks(path)
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")(errors="replace")
        self._text = ""
        self._position = 0
        self._ended = False

    def __iter__(self) -> Iterator[ChromeEvent]:
        if not self._find_array():
            return
        scan = json.JSONDecoder().raw_decode
        while self._at_event():
            try:
                value, self._position = scan(self._text, self._position)
            except RecursionError:
                self._skip_damage(DEEP_NESTING_SKIP)
            except ValueError:
                if self._ended or len(self._text) - self._position > LONGEST_EVENT:
                    self._skip_damage(1)
                else:
                    self._refill()
            else:
                event = _event(value)
                if event is None:
                    self.unread += 1
                else:
                    yield event

    def _find_array(self) -> bool:
        """Move to the first event; the array is the whole file or the value of traceEvents."""
        while self._refill() and len(self._text) <= LONGEST_HEADER:
            stripped = self._text.lstrip()
            if stripped.startswith("["):
                self._position = len(self._text) - len(stripped) + 1
                return True
            match = _ARRAY.search(self._text)
            if match is not None:
                self.header = self._text[: match.start()]
                self._position = match.end()
                return True
        return False

    def _at_event(self) -> bool:
        """Move to the next opening brace; False at the end of the array or file."""
        while True:
            match = _SEPARATOR.match(self._text, self._position)
            self._position = match.end() if match else self._position
            if self._position >= len(self._text):
                if not self._refill():
                    return False
            elif self._text[self._position] == "{":
                return True
            elif self._text[self._position] == "]":
                return False
            else:
                self._skip_damage(1)

    def _skip_damage(self, least: int) -> None:
        """Move to the next text that looks like the start of an event."""
        self.unread += 1
        begin = min(len(self._text), self._position + least)
        match = _NEXT_OBJECT.search(self._text, begin)
        self._position = match.start() if match else len(self._text)

    def _refill(self) -> bool:
        """Drop consumed text and append a chunk; False at the end of the file."""
        chunk = next(self._chunks, None)
        if chunk is None:
            self._ended = True
            return False
        self._text = self._text[self._position :] + self._decoder.decode(chunk)
        self._position = 0
        return True


def _event(value: Any) -> ChromeEvent | None:
    """Convert a JSON value to an event; None if a field is invalid."""
    if not isinstance(value, dict) or not isinstance(value.get("ph"), str):
        return None
    start, duration = _microseconds(value.get("ts", 0.0)), _microseconds(value.get("dur", 0.0))
    if start is None or duration is None or duration < 0:
        return None
    arguments = value.get("args")
    return ChromeEvent(
        phase=value["ph"],
        name=str(value.get("name", ""))[:500],
        category=str(value.get("cat", ""))[:100],
        process=str(value.get("pid", ""))[:100],
        thread=str(value.get("tid", ""))[:100],
        start=start,
        duration=duration,
        arguments=arguments if isinstance(arguments, dict) else {},
    )


def _microseconds(value: Any) -> float | None:
    if isinstance(value, str):  # Caliper and a few others quote their numbers
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return float(value) if abs(value) < LARGEST_MICROSECONDS else None
