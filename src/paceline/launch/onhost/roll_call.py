"""Before ranks start: whether all are there, where each is, and how far their clocks are apart."""

import json
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

CLOCK_ROUNDS = 8
LONGEST_LINE = 65536
RETRY_SECONDS = 0.1

Attendance = dict[str, Any]
"""What one agent tells of itself: ``ranks``, ``host``, ``boot``."""


class RollCallError(Exception):
    """Somebody did not come, or cannot reach the one who holds the call."""


@dataclass(frozen=True)
class Clock:
    """Seconds to add to this machine's clock to have that of rank 0, and by how much it may err."""

    offset_seconds: float = 0.0
    error_seconds: float = 0.0


def hold(
    place: tuple[str, int],
    own: Attendance,
    world: int,
    token: str,
    patience_seconds: float,
    asked: Callable[[], bool] = lambda: False,
) -> list[Attendance]:
    """Wait until agents of all ``world`` ranks have come, and tell each who is there.

    Those who do not know the ``token`` are not listened to.
    """
    present: dict[int, Attendance] = {own["ranks"][0]: own}
    complete, given_up = threading.Event(), threading.Event()
    lock = threading.Lock()

    def serve(peer: socket.socket) -> None:
        with peer, peer.makefile("rw", encoding="utf-8", newline="\n") as words:
            peer.settimeout(patience_seconds)
            said = json.loads(words.readline(LONGEST_LINE))
            if said.get("token") != token:
                return
            for _ in range(CLOCK_ROUNDS):
                words.readline(LONGEST_LINE)
                words.write(f"{time.time()!r}\n")
                words.flush()
            with lock:
                present[int(said["ranks"][0])] = {**said, "token": ""}
                if _count(present) == world:
                    complete.set()
            while not complete.wait(RETRY_SECONDS):
                if given_up.is_set():
                    return
            words.write(json.dumps(list(present.values())) + "\n")
            words.flush()

    threads = []
    with socket.create_server(place, backlog=world) as server:
        server.settimeout(RETRY_SECONDS)
        end = time.monotonic() + patience_seconds
        if _count(present) == world:
            complete.set()
        while not complete.is_set():
            try:
                peer, _ = server.accept()
            except TimeoutError:
                if time.monotonic() < end and not asked():
                    continue
                given_up.set()
                raise RollCallError(_absent(present, world, place, patience_seconds)) from None
            threads.append(threading.Thread(target=_quietly, args=(serve, peer), daemon=True))
            threads[-1].start()
    for thread in threads:
        thread.join(patience_seconds)
    return [present[first] for first in sorted(present)]


def attend(
    place: tuple[str, int], own: Attendance, token: str, patience_seconds: float
) -> tuple[list[Attendance], Clock]:
    """Come to the call of rank 0: who is there, and our clock against its."""
    end = time.monotonic() + patience_seconds
    with _connected(place, end) as peer:
        peer.settimeout(patience_seconds)
        with peer.makefile("rw", encoding="utf-8", newline="\n") as words:
            words.write(json.dumps({**own, "token": token}) + "\n")
            clock = _clock(words)
            answer = words.readline()
    if not answer:
        raise RollCallError(
            f"rank 0 at {place[0]}:{place[1]} ended before all ranks had reached it"
        )
    return sorted(json.loads(answer), key=lambda one: int(one["ranks"][0])), clock


def _clock(words: Any) -> Clock:
    """The offset seen in the quickest of several questions; half its way is what it may err by."""
    best: tuple[float, float] | None = None
    for _ in range(CLOCK_ROUNDS):
        sent = time.time()
        words.write("?\n")
        words.flush()
        answer = words.readline(LONGEST_LINE)
        came = time.time()
        if not answer:
            break
        seconds = came - sent
        if best is None or seconds < best[1]:
            best = float(answer) - (sent + came) / 2, seconds
    return Clock() if best is None else Clock(best[0], best[1] / 2)


def _connected(place: tuple[str, int], end: float) -> socket.socket:
    while True:
        try:
            return socket.create_connection(place, timeout=max(0.1, end - time.monotonic()))
        except OSError as error:
            if time.monotonic() + RETRY_SECONDS > end:
                raise RollCallError(
                    f"cannot reach rank 0 at {place[0]}:{place[1]}: {error}"
                ) from error
            time.sleep(RETRY_SECONDS)


def _quietly(serve: Callable[[socket.socket], None], peer: socket.socket) -> None:
    """Serve a peer; one that talks nonsense or leaves is as one that never came."""
    try:
        serve(peer)
    except (OSError, ValueError, TypeError, LookupError, AttributeError):
        return


def _count(present: dict[int, Attendance]) -> int:
    return sum(len(one["ranks"]) for one in present.values())


def _absent(
    present: dict[int, Attendance], world: int, place: tuple[str, int], seconds: float
) -> str:
    there = {rank for one in present.values() for rank in one["ranks"]}
    missing = ", ".join(str(rank) for rank in range(world) if rank not in there)
    return f"rank {missing} did not reach {place[0]}:{place[1]} within {seconds:.0f} s"
