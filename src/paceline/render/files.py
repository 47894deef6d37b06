"""Atomic writing of files."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from paceline.errors import InputError


def write_text(path: Path | str, text: str) -> Path:
    """Write ``text`` as UTF-8 to ``path`` in one move and return the path."""
    return write_bytes(path, text.encode("utf-8", errors="replace"))


def write_bytes(path: Path | str, content: bytes) -> Path:
    """Write ``content`` to ``path`` in one move and return the path.

    The content is written to a temporary file in the same directory, flushed and renamed over
    ``path``: readers see the old file or the new one, even after a crash. Missing directories are
    created.
    """
    with written(path) as file:
        file.write(content)
    return Path(path)


@contextmanager
def written(path: Path | str) -> Iterator[IO[bytes]]:
    """A file that replaces ``path`` when the block succeeds, as in `write_bytes`."""
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_dir():
            raise IsADirectoryError(21, "Is a directory")
        with _replacing(target) as file:
            yield file
    except OSError as error:
        raise _unwritable(target, error) from None


def check_writable(path: Path | str) -> None:
    """Raise the error of writing ``path`` early, before expensive work; leave no file."""
    target = Path(path)
    parents = [parent for parent in target.parents if not parent.exists()]
    try:
        if target.is_dir():
            raise IsADirectoryError(21, "Is a directory")
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=target.parent):
            pass
    except OSError as error:
        raise _unwritable(target, error) from None
    finally:
        for parent in parents:
            with suppress(OSError):
                parent.rmdir()


def _unwritable(target: Path, error: OSError) -> InputError:
    return InputError(
        f"cannot write '{target}': {error.strerror or error}",
        "use a writable directory on a disk with free space",
    )


@contextmanager
def _replacing(target: Path) -> Iterator[IO[bytes]]:
    handle, name = tempfile.mkstemp(prefix=f".{target.name[:40]}.", dir=target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            # Without fsync a crash after the rename may leave an empty file.
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _umask() -> int:
    """The umask, which can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
