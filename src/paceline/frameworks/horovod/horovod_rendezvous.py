"""Horovod's rendezvous without its launcher: rank 0 serves it and publishes its address."""

import ctypes
import os
import socket
import sys

from rank_exchange import exchange, own_address

# linux/sched.h: a host name of its own.
CLONE_NEWUTS = 0x04000000


def resolve_own_name_to(address: str, several_machines: bool) -> None:
    """Make the name of this machine resolve to ``address`` in this process.

    Horovod 0.28.1 uses the configured interface only for its first connections; for those
    of its process sets it uses the address of the machine's name, often a loopback
    address. With root rights this process sets its own host name to the address.
    """
    try:
        found = socket.gethostbyname(socket.gethostname())
    except OSError:
        found = ""
    if found == address:
        return
    try:
        _set_host_name(address)
    except OSError:
        if several_machines and (not found or found.startswith("127.")):
            raise RuntimeError(
                f"Horovod needs the host name {socket.gethostname()} to resolve to {address}, not "
                f"{found or 'nothing'}: set it in /etc/hosts"
            ) from None


def _set_host_name(name: str) -> None:
    """Set the host name of this thread and its children (Linux, needs root)."""
    if sys.platform != "linux" or ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWUTS) != 0:
        raise PermissionError(ctypes.get_errno())
    socket.sethostname(name)


def join_ranks(rank: int, world: int) -> object:
    """Set Horovod's variables, so that its `init` finds the other ranks over Gloo.

    Returns an object to keep during the rendezvous. Ranks are numbered node by node.
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
    resolve_own_name_to(own_address(), len(nodes) > 1)
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
