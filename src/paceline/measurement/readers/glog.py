"""The line prefix of Google's logging library, with and without the year."""

import re
from dataclasses import dataclass

_PREFIX = re.compile(
    r"[IWEF](?:\d{4}|\d{8}) (\d{2}):(\d{2}):(\d{2}\.\d{1,9})\s+(\d{1,10}) ([\w./+-]{1,200}):\d+\] ?"
)


@dataclass(frozen=True, slots=True)
class GlogLine:
    """Message, source file, thread and second of the day of one line."""

    message: str
    source: str
    thread: int
    second_of_day: float


def split_glog(text: str) -> GlogLine | None:
    """Parts of a glog line (``I20261115 20:35:55.557313  4672 solver.cpp:239] ...``), or None."""
    match = _PREFIX.match(text)
    if match is None:
        return None
    hours, minutes, seconds = int(match[1]), int(match[2]), float(match[3])
    return GlogLine(
        text[match.end() :], match[5], int(match[4]), hours * 3600 + minutes * 60 + seconds
    )
