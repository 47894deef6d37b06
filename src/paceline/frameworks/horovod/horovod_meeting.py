"""Horovod's own rendezvous without its launcher: rank 0 serves it, the others are told where."""

import os

from meeting import exchange


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
