"""The rendezvous of PyTorch's ranks: a store that listens on MASTER_ADDR only."""

import os
import socket
from datetime import timedelta
from typing import Any

import torch.distributed as dist

PATIENCE = timedelta(minutes=5)


def join(backend: str) -> None:
    """Join the rendezvous and create the process group."""
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    own: dict[str, Any] = {}
    if rank == 0:  # by default TCPStore listens on all interfaces
        own["master_listen_fd"] = socket.create_server((address, port)).detach()
    store = dist.TCPStore(address, port, world, rank == 0, PATIENCE, **own)
    dist.init_process_group(backend, store=store, rank=rank, world_size=world)
