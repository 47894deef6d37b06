"""The barrier before ranks start: agents exchange their hosts and measure their clock offsets."""

import hmac
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
HELLO_SECONDS = 10.0
"""Time in which a connection must show the token; port scanners connect and say nothing."""

AgentRecord = dict[str, Any]
"""What one agent reports about itself: ``ranks``, ``host``, ``boot``."""


class BarrierError(Exception):
    """A rank did not arrive, or cannot reach rank 0."""


@dataclass(frozen=True)
class Clock:
    """Offset of rank 0's clock from this machine's clock, and the bound of its error."""

    offset_seconds: float = 0.0
    error_seconds: float = 0.0


def serve_barrier(
    endpoint: tuple[str, int],
    own: AgentRecord,
    world: int,
    token: str,
    timeout_seconds: float,
    should_stop: Callable[[], bool] = lambda: False,
) -> list[AgentRecord]:
    """Wait for the agents of all ``world`` ranks, then send each the list of agents.

    Connections without the ``token`` are ignored.
    """
    present: dict[int, AgentRecord] = {own["ranks"][0]: own}
    complete, aborted = threading.Event(), threading.Event()
    lock, agents = threading.Lock(), list[threading.Thread]()

    def serve(peer: socket.socket) -> None:
        with peer, peer.makefile("rw", encoding="utf-8", newline="\n") as stream:
            peer.settimeout(min(HELLO_SECONDS, timeout_seconds))
            message = json.loads(stream.readline(LONGEST_LINE))
            if not hmac.compare_digest(str(message.get("token")).encode(), token.encode()):
                return
            peer.settimeout(timeout_seconds)
            agents.append(threading.current_thread())
            for _ in range(CLOCK_ROUNDS):
                stream.readline(LONGEST_LINE)
                stream.write(f"{time.time()!r}\n")
                stream.flush()
            with lock:
                present[int(message["ranks"][0])] = {**message, "token": ""}
                if _count(present) == world:
                    complete.set()
            while not complete.wait(RETRY_SECONDS):
                if aborted.is_set():
                    return
            stream.write(json.dumps(list(present.values())) + "\n")
            stream.flush()

    with socket.create_server(endpoint, backlog=world) as server:
        server.settimeout(RETRY_SECONDS)
        end = time.monotonic() + timeout_seconds
        if _count(present) == world:
            complete.set()
        while not complete.is_set():
            try:
                peer, _ = server.accept()
            except TimeoutError:
                if time.monotonic() < end and not should_stop():
                    continue
                aborted.set()
                raise BarrierError(
                    _describe_missing(present, world, endpoint, timeout_seconds)
                ) from None
            threading.Thread(target=_serve_safely, args=(serve, peer), daemon=True).start()
    for thread in agents:  # not for strangers, who may keep a connection open
        thread.join(timeout_seconds)
    return [present[first] for first in sorted(present)]


def join_barrier(
    endpoint: tuple[str, int], own: AgentRecord, token: str, timeout_seconds: float
) -> tuple[list[AgentRecord], Clock]:
    """Connect to rank 0; return the list of agents and the offset of its clock."""
    end = time.monotonic() + timeout_seconds
    with _connect(endpoint, end) as peer:
        peer.settimeout(timeout_seconds)
        with peer.makefile("rw", encoding="utf-8", newline="\n") as stream:
            stream.write(json.dumps({**own, "token": token}) + "\n")
            clock = _clock_offset(stream)
            answer = stream.readline()
    if not answer:
        raise BarrierError(
            f"rank 0 at {endpoint[0]}:{endpoint[1]} ended before all ranks had reached it"
        )
    return sorted(json.loads(answer), key=lambda agent: int(agent["ranks"][0])), clock


def _clock_offset(stream: Any) -> Clock:
    """Return the offset of the fastest of several round trips, as NTP does.

    Its error is at most half the round trip.
    """
    best: tuple[float, float] | None = None
    for _ in range(CLOCK_ROUNDS):
        sent = time.time()
        stream.write("?\n")
        stream.flush()
        answer = stream.readline(LONGEST_LINE)
        received = time.time()
        if not answer:
            break
        seconds = received - sent
        if best is None or seconds < best[1]:
            best = float(answer) - (sent + received) / 2, seconds
    return Clock() if best is None else Clock(best[0], best[1] / 2)


def _connect(endpoint: tuple[str, int], end: float) -> socket.socket:
    while True:
        try:
            return socket.create_connection(endpoint, timeout=max(0.1, end - time.monotonic()))
        except OSError as error:
            if time.monotonic() + RETRY_SECONDS > end:
                raise BarrierError(
                    f"cannot reach rank 0 at {endpoint[0]}:{endpoint[1]}: {error}"
                ) from error
            time.sleep(RETRY_SECONDS)


def _serve_safely(serve: Callable[[socket.socket], None], peer: socket.socket) -> None:
    """Serve a peer; ignore one that disconnects or does not follow the protocol."""
    try:
        serve(peer)
    except (OSError, ValueError, TypeError, LookupError, AttributeError):
        return


def _count(present: dict[int, AgentRecord]) -> int:
    return sum(len(agent["ranks"]) for agent in present.values())


def _describe_missing(
    present: dict[int, AgentRecord], world: int, endpoint: tuple[str, int], seconds: float
) -> str:
    there = {rank for agent in present.values() for rank in agent["ranks"]}
    missing = ", ".join(str(rank) for rank in range(world) if rank not in there)
    return f"rank {missing} did not reach {endpoint[0]}:{endpoint[1]} within {seconds:.0f} s"
