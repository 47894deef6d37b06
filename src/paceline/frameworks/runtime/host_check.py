"""One host of the pre-flight check: names, connections, latency, bandwidth and clocks.

    python host_check.py JOB.json EVENTS.jsonl

Standard library only, one process per host, environment as for any worker. Hosts exchange their
addresses over the rendezvous, then one pair after the other measures its connection: round trips of
small messages, then the bandwidth. The job has ``hosts`` (names, in
the order of ranks), ``distributions`` (to report their versions), ``patience_seconds`` for a
connection and ``stream_seconds`` of the bandwidth test.
"""

import importlib.metadata
import json
import os
import platform
import socket
import struct
import sys
import time
from typing import Any

import rank_exchange
from channel import Events, die_with_parent
from host_devices import devices

ROUND_TRIPS = 200
CHUNK = bytes(1 << 18)
# The ioctl that reads the address of an interface (linux/sockios.h).
SIOCGIFADDR = 0x8915


def main() -> None:
    die_with_parent()
    with open(sys.argv[1], encoding="utf-8") as file:
        job = json.load(file)
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    rank_exchange.PATIENCE_SECONDS = job["patience_seconds"] * 4
    with Events(sys.argv[2]) as events:
        events.write("hello", rank=rank, world=world, versions=versions(job["distributions"]))
        own_address = address_towards(os.environ["MASTER_ADDR"])
        server = socket.create_server(("", 0), backlog=world)
        about = {
            "name": platform.node(),
            "address": own_address,
            "port": server.getsockname()[1],
            "interface": interface_of(own_address),
            "variables": {
                name: os.environ[name]
                for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")
                if name in os.environ
            },
        }
        everyone = rank_exchange.exchange(about)
        events.write("devices", rank=rank, **devices(about["interface"]))
        events.write("host", rank=rank, **about, names=resolved(job["hosts"], everyone))
        for low in range(world):
            for high in range(low + 1, world):
                if rank in (low, high):
                    other = high if rank == low else low
                    found = pair(server, everyone[low], other, rank == low, job)
                    events.write("pair", rank=rank, other=other, **found)
                rank_exchange.exchange(None)
        events.write("end", rank=rank)
    os._exit(0)


def versions(distributions: "list[str]") -> "dict[str, str]":
    """Return the versions of Python, the kernel and ``distributions``."""
    found = {"python": platform.python_version(), "system": platform.release()}
    for name in distributions:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = ""
    return found


def address_towards(peer: str) -> str:
    """Return the local address from which packets to ``peer`` leave."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((peer, 9))
        return str(probe.getsockname()[0])


def interface_of(address: str) -> str:
    """Return the interface of a local address; empty if unknown."""
    try:
        import fcntl
    except ImportError:
        return ""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            try:
                request = struct.pack("256s", name.encode()[:15])
                answer = fcntl.ioctl(probe.fileno(), SIOCGIFADDR, request)
            except OSError:
                continue
            if socket.inet_ntoa(answer[20:24]) == address:
                return name
    return ""


def resolved(names: "list[str]", everyone: "list[dict]") -> "list[dict]":
    found = []
    for name, other in zip(names, everyone):  # noqa: B905 (old interpreters)
        try:
            there = socket.gethostbyname(name)
        except OSError:
            there = ""
        try:
            back = socket.gethostbyaddr(other["address"])[0]
        except OSError:
            back = ""
        found.append({"name": name, "address": there, "reverse": back})
    return found


def accepted(server: socket.socket, wanted: int, patience: float) -> socket.socket:
    """Return the connection of the rank ``wanted``; close late connections of other ranks."""
    deadline = time.monotonic() + patience
    while True:
        server.settimeout(max(0.01, deadline - time.monotonic()))
        connection, _ = server.accept()
        connection.settimeout(patience)
        (rank,) = struct.unpack("<q", receive(connection, 8))
        if rank == wanted:
            return connection
        connection.close()


def pair(
    server: socket.socket, listener: dict, other: int, listens: bool, job: dict
) -> "dict[str, Any]":
    """Measure the connection of two hosts; on failure return an ``error`` message."""
    patience = job["patience_seconds"]
    try:
        if listens:
            connection = accepted(server, other, patience)
        else:
            address = (listener["address"], listener["port"])
            connection = socket.create_connection(address, timeout=patience)
            connection.sendall(struct.pack("<q", int(os.environ["RANK"])))
        with connection:
            connection.settimeout(patience + 2 * job["stream_seconds"])
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            role = serve if listens else ask
            return role(connection, job["stream_seconds"])
    except OSError as error:
        return {"error": str(error) or type(error).__name__}


def serve(connection: socket.socket, stream_seconds: float) -> "dict[str, Any]":
    """Answer each small message with the local time, then receive bytes, then send."""
    for _ in range(ROUND_TRIPS):
        receive(connection, 8)
        connection.sendall(struct.pack("<d", time.time()))
    take_bytes(connection)
    return {"error": "", "bytes_per_second": send_bytes(connection, stream_seconds)}


def ask(connection: socket.socket, stream_seconds: float) -> "dict[str, Any]":
    """Measure round trips, the clock offset at the fastest, and the bandwidth each way."""
    trips = []
    for _ in range(ROUND_TRIPS):
        sent, begun = time.time(), time.perf_counter()
        connection.sendall(b"12345678")
        (there,) = struct.unpack("<d", receive(connection, 8))
        seconds = time.perf_counter() - begun
        trips.append((seconds, there - sent - seconds / 2))
    seconds, offset = min(trips)
    rate = send_bytes(connection, stream_seconds)
    take_bytes(connection)
    trips.sort()
    return {
        "error": "",
        "round_trip_seconds": trips[len(trips) // 2][0],
        "bytes_per_second": rate,
        "clock_offset_seconds": offset,
        "clock_error_seconds": seconds / 2,
    }


def send_bytes(connection: socket.socket, stream_seconds: float) -> float:
    """Return the bytes per second that arrived while sending at full rate."""
    begun = time.perf_counter()
    while time.perf_counter() < begun + stream_seconds:
        connection.sendall(struct.pack("<q", len(CHUNK)))
        connection.sendall(CHUNK)
    connection.sendall(struct.pack("<q", 0))
    (taken,) = struct.unpack("<q", receive(connection, 8))
    return taken / (time.perf_counter() - begun)


def take_bytes(connection: socket.socket) -> None:
    """Receive until the sender ends, and report the number of bytes."""
    taken = 0
    buffer = bytearray(1 << 20)
    while True:
        (left,) = struct.unpack("<q", receive(connection, 8))
        if left == 0:
            break
        taken += left
        while left:
            count = connection.recv_into(buffer, min(left, len(buffer)))
            if not count:
                raise ConnectionError("the other host closed the connection")
            left -= count
    connection.sendall(struct.pack("<q", taken))


def receive(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = connection.recv(count - len(data))
        if not part:
            raise ConnectionError("the other host closed the connection")
        data += part
    return data


if __name__ == "__main__":
    main()
