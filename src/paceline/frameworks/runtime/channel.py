"""How a worker talks to the launcher: events out as JSON lines, and an end when it is gone."""

import json
import os
import threading
import time
import traceback


class Events:
    """Writes events to a file, one JSON object a line, flushed at once.

    As a context manager it turns an exception into a ``failure`` event with its kind, message
    and place before the exception goes on.
    """

    def __init__(self, path: str) -> None:
        self._file = open(path, "a", encoding="utf-8")  # noqa: SIM115

    def write(self, event: str, **fields: object) -> None:
        """Append one event with the time of writing (seconds since the epoch)."""
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
    """Whether an allocation failed, on the host or on a device."""
    text = str(error).lower()
    return isinstance(error, MemoryError) or "out of memory" in text or "can't allocate" in text


def last_place(error: BaseException) -> str:
    """``file:line`` where the exception was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""


def die_with_parent() -> None:
    """End this process when the launcher is gone: its end of our standard input closes then."""

    def watch() -> None:
        while os.read(0, 1):  # unbuffered: a lock held here would abort the interpreter's end
            pass
        os._exit(113)

    if os.environ.get("PACELINE_WATCH_STDIN") == "1":
        threading.Thread(target=watch, daemon=True).start()
