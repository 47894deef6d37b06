"""Horovod's own rendezvous without its launcher: rank 0 serves it, the others are told where."""

import ctypes
import os
import socket
import sys

from meeting import exchange, own_address

CLONE_NEWUTS = 0x04000000


def be_found_at(address: str, several_machines: bool) -> None:
    """See to it that the name of this machine stands for ``address``, in this process.

    Horovod 0.28.1 uses the interface that it is told for its first connections only; for those
    of its process sets it takes the address that the machine's name stands for, often a loopback
    one. With the rights for it this process gets a name of its own, which is the address.
    """
    try:
        found = socket.gethostbyname(socket.gethostname())
    except OSError:
        found = ""
    if found == address:
        return
    try:
        _take_name(address)
    except OSError:
        if several_machines and (not found or found.startswith("127.")):
            raise RuntimeError(
                f"Horovod looks for this machine by its name, {socket.gethostname()}, which is "
                f"{found or 'unknown'} here: let it stand for {address} in /etc/hosts"
            ) from None


def _take_name(name: str) -> None:
    """Call the machine ``name`` in this thread and those it starts (Linux, needs root)."""
    if sys.platform != "linux" or ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWUTS) != 0:
        raise PermissionError(ctypes.get_errno())
    socket.sethostname(name)


def join_ranks(rank: int, world: int) -> object:
    """Set Horovod's variables, so that its `init` meets the other ranks over Gloo.

    Returns what must be kept while ranks meet. Ranks are numbered node by node.
    """
    each = int(os.environ.get("LOCAL_WORLD_SIZE", world))
    nodes = [f"node{node}" for node in range(world // each)]
    server = None
    port = 0
    if rank == 0:
        from horovod.runner.common.util.hosts import get_host_assignments, parse_hosts
        from horovod.runner.http.http_server import RendezvousServer

        server = RendezvousServer(0)
        port = server.start()
        server.init(
            get_host_assignments(parse_hosts(",".join(f"{node}:{each}" for node in nodes)), world)
        )
    port = exchange(port)[0]
    be_found_at(own_address(), len(nodes) > 1)
    node = rank // each
    own = {"RANK": rank, "SIZE": world, "LOCAL_RANK": rank % each, "LOCAL_SIZE": each}
    own |= {"CROSS_RANK": node, "CROSS_SIZE": len(nodes), "GLOO_RENDEZVOUS_PORT": port}
    os.environ.update({f"HOROVOD_{name}": str(value) for name, value in own.items()})
    os.environ.update(
        HOROVOD_HOSTNAME=nodes[node],
        HOROVOD_GLOO_RENDEZVOUS_ADDR=os.environ["MASTER_ADDR"],
        HOROVOD_GLOO_IFACE=os.environ.get("HOROVOD_GLOO_IFACE", "lo"),
        HOROVOD_CONTROLLER="gloo",
        HOROVOD_CPU_OPERATIONS="gloo",
    )
    return server
