"""What a user names to be read: a file, or a pipe with a writer, and no more than is meant."""

import os
import stat
from pathlib import Path
from typing import IO

from paceline.errors import InputError
from paceline.units import format_bytes


def opened(path: Path) -> IO[bytes]:
    """``path`` for reading; an error for the user where it is no file or cannot be read.

    A pipe that nobody writes to is empty rather than waited for; a device is refused, since it
    may never end.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot read {path}: {reason}", "name a file that is there") from None
    kind = os.fstat(handle).st_mode
    if not (stat.S_ISREG(kind) or stat.S_ISFIFO(kind)):
        os.close(handle)
        what = "a directory" if stat.S_ISDIR(kind) else "not a file"
        raise InputError(f"cannot read {path}: it is {what}", "name a file")
    os.set_blocking(handle, True)
    return os.fdopen(handle, "rb")


def read_text(path: Path, most_bytes: int, kind: str) -> str:
    """The text of a file of a ``kind`` that is never larger than ``most_bytes``."""
    with opened(path) as file:
        try:
            content = file.read(most_bytes + 1)
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}", f"name a {kind}") from None
    if len(content) > most_bytes:
        raise InputError(
            f"{path} is larger than {format_bytes(most_bytes)}, so it is no {kind}",
            f"name a {kind}",
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"cannot read {path}: not UTF-8 text", f"name a {kind}") from None
