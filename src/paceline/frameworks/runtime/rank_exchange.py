"""Exchange of values between ranks over TCP, independent of their framework."""

import json
import os
import socket
import time

PATIENCE_SECONDS = 120.0


def exchange(value: object) -> list:
    """Return every rank's JSON ``value``, in the order of ranks, on every rank.

    Rank 0 listens at MASTER_ADDR:MASTER_PORT and closes the port before it answers, so that ranks
    may exchange again at once.
    """
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
    if world == 1:
        return [value]
    return _collect(address, world, value) if rank == 0 else _send(address, rank, value)


def own_address() -> str:
    """Return the address of this machine that rank 0 sees."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))
        return str(probe.getsockname()[0])


def own_endpoint() -> str:
    """Return ``address:port`` for this rank to listen on: a free port, reachable by rank 0."""
    address = own_address()
    with socket.socket() as probe:
        probe.bind((address, 0))
        return f"{address}:{probe.getsockname()[1]}"


def _collect(address: tuple[str, int], world: int, own: object) -> list:
    values = {0: own}
    peers = []
    with socket.create_server(address) as server:
        server.settimeout(PATIENCE_SECONDS)
        while len(values) < world:
            try:
                peer, _ = server.accept()
            except TimeoutError:
                missing = sorted(set(range(world)) - set(values))
                ranks = ", ".join(map(str, missing))
                raise TimeoutError(f"rank {ranks} did not reach {_endpoint(address)}") from None
            stream = peer.makefile("rw", encoding="utf-8")
            rank, value = json.loads(stream.readline())
            values[rank] = value
            peers.append((peer, stream))
    everything = [values[rank] for rank in range(world)]
    for peer, stream in peers:
        stream.write(json.dumps(everything) + "\n")
        stream.flush()
        stream.close()
        peer.close()
    return everything


def _send(address: tuple[str, int], rank: int, value: object) -> list:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            connection = socket.create_connection(address, timeout=PATIENCE_SECONDS)
            break
        except OSError:
            if time.monotonic() > deadline:
                raise TimeoutError(f"rank 0 did not open {_endpoint(address)}") from None
            time.sleep(0.05)
    with connection, connection.makefile("rw", encoding="utf-8") as stream:
        stream.write(json.dumps([rank, value]) + "\n")
        stream.flush()
        answer = stream.readline()
    if not answer:
        raise ConnectionError("rank 0 left the rendezvous before all ranks had joined")
    return json.loads(answer)


def _endpoint(address: tuple[str, int]) -> str:
    return f"the rendezvous at {address[0]}:{address[1]} within {PATIENCE_SECONDS:.0f} s"
