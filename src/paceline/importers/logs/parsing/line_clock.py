"""Time stamps of lines."""

import re
from datetime import datetime

_STAMP = re.compile(r"\b(20\d\d)[-/](\d\d)[-/](\d\d)[ T,_](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,6}))?")


def stamp(text: str) -> float | None:
    """The first time stamp (date and time) of a line in seconds; None if there is none."""
    match = _STAMP.search(text[:200])
    if match is None:
        return None
    *parts, fraction = match.groups()
    try:
        whole = datetime(*(int(part) for part in parts)).timestamp()  # type: ignore[arg-type]
    except (ValueError, OverflowError, OSError):
        return None
    return whole + float(f"0.{fraction}" if fraction else 0)
