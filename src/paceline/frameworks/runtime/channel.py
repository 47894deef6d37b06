"""The channel between a worker and the launcher: JSON-line events, and a watch on its input."""

import json
import os
import threading
import time
import traceback


class Events:
    """Writes events to a file, one JSON object per line, flushed immediately.

    As a context manager it writes a ``failure`` event with kind, message and ``file:line`` of
    an exception, which then propagates.
    """

    def __init__(self, path: str) -> None:
        self._file = open(path, "a", encoding="utf-8")  # noqa: SIM115

    def write(self, event: str, **fields: object) -> None:
        """Append one event with the current time (seconds since the epoch)."""
        record = {"event": event, "time": time.time(), **fields}
        self._file.write(json.dumps(record) + "\n")
        self._file.flush()

    def __enter__(self) -> "Events":
        return self

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if error is not None and not isinstance(error, SystemExit):
            self.write(
                "failure",
                kind="out of memory" if is_out_of_memory(error) else type(error).__name__,
                message=str(error).strip()[:2000],
                place=last_place(error),
            )
        self._file.close()


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an allocation failed, on the host or on a device."""
    text = str(error).lower()
    return isinstance(error, MemoryError) or "out of memory" in text or "can't allocate" in text


def last_place(error: BaseException) -> str:
    """Return ``file:line`` of an exception."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""


def die_with_parent() -> None:
    """End this process when standard input closes: then the launcher is gone."""

    def watch() -> None:
        while os.read(0, 1):  # unbuffered: a lock held here would abort the interpreter's end
            pass
        os._exit(113)

    if os.environ.get("PACELINE_WATCH_STDIN") == "1":
        threading.Thread(target=watch, daemon=True).start()
