"""Input files of the user: only regular files, and only up to a size limit."""

import os
import stat
from io import BufferedReader
from pathlib import Path

from paceline.errors import InputError, StoreError
from paceline.units import format_bytes

STORE_HINT = "choose a writable path with --store or $PACELINE_STORE"


def _special_kind(path: Path) -> str:
    """The type of a ``path`` that is not a regular file, such as "a named pipe"; empty for files.

    The path is not opened: a pipe may never have a writer, and opening a device may have effects.
    """
    mode = path.stat().st_mode
    if stat.S_ISREG(mode):
        return ""
    kinds = {stat.S_IFDIR: "a directory", stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")


def reason_of(error: OSError | ValueError) -> str:
    """The cause of an error, without number and path: "Permission denied"."""
    return getattr(error, "strerror", None) or str(error)


def check_file(path: Path, hint: str = "give an existing file", directories: bool = False) -> None:
    """Raise a user error unless ``path`` is a regular file, or a directory if allowed."""
    try:
        kind = _special_kind(path)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {path}: {reason_of(error)}", hint) from None
    if kind and not (directories and kind == "a directory"):
        raise InputError(f"cannot read {path}: it is {kind}", "give a regular file")


def check_store_path(path: Path) -> None:
    """Raise unless ``path`` is a regular file or does not exist.

    SQLite would block on a pipe with signals held, and interpret ``:memory:`` and URIs as
    databases that may not outlive the command.
    """
    if str(path) == ":memory:" or str(path).startswith("file:"):
        raise StoreError(
            f"the store '{path}' is not a file name", "give a file, such as --store s.db"
        )
    try:
        kind = _special_kind(path)
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise StoreError(f"cannot open the store {path}: {reason_of(error)}", STORE_HINT) from None
    if kind:
        raise StoreError(f"cannot open the store {path}: it is {kind}", "give a regular file")


def opened(path: Path) -> BufferedReader:
    """Open a regular file for reading; raises a user error otherwise.

    Non-blocking, because a kernel file without data (``/proc/kmsg``) would block the read.
    """
    check_file(path)
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise InputError(
            f"cannot read {path}: {reason_of(error)}", "give an existing file"
        ) from None
    return os.fdopen(handle, "rb")


def read_text(path: Path, most_bytes: int, kind: str) -> str:
    """The text of a file; raises a user error if it has more than ``most_bytes``."""
    with opened(path) as file:
        try:
            content = file.read(most_bytes + 1) or b""
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}", f"give a {kind}") from None
    if len(content) > most_bytes:
        raise InputError(
            f"{path} is too large for a {kind} (maximum {format_bytes(most_bytes)})",
            f"give a {kind}",
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"cannot read {path}: not UTF-8 text", f"give a {kind}") from None
