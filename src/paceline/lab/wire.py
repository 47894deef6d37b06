"""Forwards frames between the ports of a switch after a delay, where the kernel has no netem.

    python -I -S wire.py SECONDS PORT...

Runs in the namespace of the switch, one process for all ports, until it is killed. Ends if standard
input closes before a first line: then the process that started it is gone. Linux and the
standard library only. Frames have the size of TCP's offloaded segments, with a virtio header for
the NIC's offloads, so that Python keeps up with several Gbit/s.
"""

import ctypes
import os
import select
import socket
import struct
import sys
import time
from collections import deque
from contextlib import suppress

# Constants of Linux (linux/if_ether.h, linux/if_packet.h, asm/socket.h, linux/prctl.h).
ETH_P_ALL = 3
SOL_PACKET, PACKET_VNET_HDR, PACKET_IGNORE_OUTGOING = 263, 15, 23
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33
PR_SET_TIMERSLACK = 29
BUFFER_BYTES = 64 << 20
HEADER_BYTES = 10
LONGEST_FRAME = 1 << 17
FRAMES_AT_ONCE = 32
MOST_WAITING = 200_000
IDLE_SECONDS = 3600.0


def main(delay: float, names: list[str]) -> None:
    ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1)
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(2))
    ports = [open_port(name) for name in names]
    print("ready", flush=True)
    if not sys.stdin.readline():
        return
    carry(ports, delay)


def open_port(name: str) -> socket.socket:
    """Return a socket that receives every incoming frame of a device with its virtio header."""
    port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    port.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    port.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    for option in (SO_SNDBUFFORCE, SO_RCVBUFFORCE):
        port.setsockopt(socket.SOL_SOCKET, option, BUFFER_BYTES)
    port.setblocking(False)
    port.bind((name, ETH_P_ALL))
    return port


def carry(ports: list[socket.socket], delay: float) -> None:
    """Forward each frame after ``delay`` to the port where its address was last seen."""
    waiting: deque[tuple[float, socket.socket, bytes]] = deque()
    seen: dict[bytes, socket.socket] = {}
    while True:
        now = time.monotonic()
        while waiting and waiting[0][0] <= now:
            _, came_in, frame = waiting.popleft()
            send(frame, came_in, seen, ports)
        rest = waiting[0][0] - time.monotonic() if waiting else IDLE_SECONDS
        readable, _, _ = select.select(ports, (), (), max(0.0, rest))
        for port in readable:
            due = time.monotonic() + delay
            for _ in range(FRAMES_AT_ONCE):
                try:
                    frame = port.recv(LONGEST_FRAME)
                except OSError:
                    break
                if len(waiting) < MOST_WAITING:
                    seen[frame[HEADER_BYTES + 6 : HEADER_BYTES + 12]] = port
                    waiting.append((due, port, frame))


def send(
    frame: bytes,
    came_in: socket.socket,
    seen: dict[bytes, socket.socket],
    ports: list[socket.socket],
) -> None:
    """Send a frame to the port of its address, or to all others; drop it if a queue is full."""
    known = seen.get(frame[HEADER_BYTES : HEADER_BYTES + 6])
    # Of the virtio flags only NEEDS_CSUM (1) applies to sending; DATA_VALID (2) is for receivers.
    flags, kind, *rest = struct.unpack_from("<BBHHHH", frame)
    frame = struct.pack("<BBHHHH", flags & 1, kind, *rest) + frame[HEADER_BYTES:]
    for port in ports if known is None else [known]:
        if port is not came_in:
            with suppress(OSError):
                port.send(frame)


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2:])
