"""Rate and delay of a host's link, with the kernel's tbf and netem."""

from paceline.lab.machine import run, works

QUEUE_SECONDS = 0.02
"""Longest time of a frame in the queue before it is dropped."""
BURST_SECONDS = 0.001
LEAST_BURST_BYTES = 64 * 1024
"""Smallest burst: one segment at TCP's largest segmentation-offload size."""
PIECE_BYTES = 16 * 1024
"""Limit of segmentation offload (GSO) on slow links, which keeps bursts short."""
SLOW_LINK = 60e6
"""Bytes per second below which `PIECE_BYTES` applies: 480 Mbit/s."""
ETHERNET_SHARE = 1448 / 1514
"""TCP payload as a share of a full Ethernet frame."""


def burst_bytes(rate: float) -> int:
    """Return the burst of a link of ``rate`` bytes per second.

    With a smaller burst the timer of tbf does not keep up with the rate; with a larger one
    messages of that size take no time.
    """
    if rate < SLOW_LINK:
        return 2 * PIECE_BYTES
    return max(4 * LEAST_BURST_BYTES, round(BURST_SECONDS * rate))


def goodput(rate: float) -> float:
    """Return the TCP payload rate of a link of ``rate`` bytes per second."""
    return ETHERNET_SHARE * rate


def shape(namespace: str, device: str, rate: float | None, delay: float = 0.0) -> None:
    """Set the rate of a device and, with netem, a ``delay`` in seconds for outgoing frames.

    Replaces earlier settings.
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
    """Return whether the kernel has netem; removes the queueing discipline of the device."""
    works("tc", "-n", namespace, "qdisc", "del", "dev", device, "root")
    added = ("tc", "-n", namespace, "qdisc", "add", "dev", device, "root", "netem", "delay", "1ms")
    found = works(*added)
    works("tc", "-n", namespace, "qdisc", "del", "dev", device, "root")
    return found
