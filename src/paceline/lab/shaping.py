"""The rate and the delay of a host's link, with what the kernel has for them."""

from paceline.lab.machine import run, works

QUEUE_SECONDS = 0.02
"""How long a frame may wait for its turn before it is dropped."""
BURST_SECONDS = 0.001
LEAST_BURST_BYTES = 64 * 1024
"""What may pass at once: one segment as large as TCP hands them down."""
PIECE_BYTES = 16 * 1024
"""TCP hands down pieces no larger than this where a link is slow, so that bursts stay short."""
SLOW_LINK = 60e6
"""Bytes per second below which pieces are kept short: 480 Mbit/s."""
ETHERNET_SHARE = 1448 / 1514
"""Payload of TCP in a full frame, of what a link carries."""


def burst_bytes(rate: float) -> int:
    """What a link of ``rate`` bytes per second lets pass at once.

    Too little and the timer that refills it does not keep up with the rate; too much and
    messages of that size cost nothing.
    """
    if rate < SLOW_LINK:
        return 2 * PIECE_BYTES
    return max(4 * LEAST_BURST_BYTES, round(BURST_SECONDS * rate))


def goodput(rate: float) -> float:
    """Bytes per second that TCP gets through a link of ``rate`` bytes per second."""
    return ETHERNET_SHARE * rate


def shape(namespace: str, device: str, rate: float | None, delay: float = 0.0) -> None:
    """Give a device of a namespace its rate, and by netem a ``delay`` (seconds) for what it sends.

    Whatever it had before is replaced.
    """
    works("tc", "-n", namespace, "qdisc", "del", "dev", device, "root")
    parent: tuple[str, ...] = ("root",)
    if delay:
        run(
            *("tc", "-n", namespace, "qdisc", "add", "dev", device, "root", "handle", "1:"),
            *("netem", "delay", f"{round(delay * 1e6)}us", "limit", "100000"),
        )
        parent = ("parent", "1:1", "handle", "10:")
    if rate is None:
        return
    piece = PIECE_BYTES if rate < SLOW_LINK else LEAST_BURST_BYTES
    run("ip", "-n", namespace, "link", "set", device, "gso_max_size", str(piece))
    run(
        *("tc", "-n", namespace, "qdisc", "add", "dev", device, *parent, "tbf"),
        *("rate", f"{round(8 * rate)}bit", "burst", str(burst_bytes(rate))),
        *("latency", f"{round(QUEUE_SECONDS * 1e3)}ms"),
    )


def has_netem(namespace: str, device: str) -> bool:
    """Whether the kernel delays frames by itself; the device loses its queue."""
    works("tc", "-n", namespace, "qdisc", "del", "dev", device, "root")
    words = ("tc", "-n", namespace, "qdisc", "add", "dev", device, "root", "netem", "delay", "1ms")
    found = works(*words)
    works("tc", "-n", namespace, "qdisc", "del", "dev", device, "root")
    return found
