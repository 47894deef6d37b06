"""Trains one job with MXNet and its parameter server.

    python mxnet_kvstore.py JOB.json EVENTS.jsonl

Started once per rank; MXNet, NumPy and the standard library only. Rank 0 also starts the
scheduler and one server. PACELINE_MXNET_KVSTORE is `dist_sync` (default) or `dist_async`;
PACELINE_MXNET_UPDATE is `worker` (default) or `server`: the process that updates weights.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

WORLD = int(os.environ["WORLD_SIZE"])
RANK = int(os.environ["RANK"])
FAREWELL_SECONDS = 5.0
UPDATES_AT_SERVER = os.environ.get("PACELINE_MXNET_UPDATE", "worker") == "server"


def place_roles() -> list[subprocess.Popen]:
    """Set MXNet's rendezvous variables; on rank 0, start the scheduler and the server."""
    os.environ.update(
        DMLC_PS_ROOT_URI=os.environ["MASTER_ADDR"],
        DMLC_PS_ROOT_PORT=os.environ["MASTER_PORT"],
        DMLC_NODE_HOST=os.environ["MASTER_ADDR"],
        DMLC_NUM_SERVER="1",
        DMLC_NUM_WORKER=str(WORLD),
        DMLC_ROLE="worker",
    )
    if RANK != 0:
        return []
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mxnet_server_role.py")
    return [
        subprocess.Popen(
            [sys.executable, script, sys.argv[1]],
            stdin=subprocess.PIPE,
            env={**os.environ, "DMLC_ROLE": role},
        )
        for role in ("scheduler", "server")
    ]


ROLES = place_roles() if WORLD > 1 and __name__ == "__main__" else []
LEAVING = threading.Event()


def end_with_roles() -> None:
    """End this rank if its scheduler or server fails: otherwise it waits forever.

    They fail if another program takes their port before they listen on it.
    """

    def watch(role: subprocess.Popen) -> None:
        if role.wait() and not LEAVING.is_set():
            print("MXNet's scheduler or server failed", file=sys.stderr, flush=True)
            os._exit(1)

    for role in ROLES:
        threading.Thread(target=watch, args=(role,), daemon=True).start()


end_with_roles()

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from mxnet_network import Network
from numpy_data import batches
from stepping import Training, require_plain_sgd, run_worker


def versions() -> Mapping[str, Any]:
    """Return the versions that affect the speed of this rank."""
    features = mx.runtime.Features()
    return {
        "framework": f"mxnet {mx.__version__}",
        "numpy": np.__version__,
        "onednn": features.is_enabled("MKLDNN"),
    }


class KvstoreTraining(Training):
    """One rank's network, data and trainer."""

    def __init__(self, job: dict, rank: int, world: int) -> None:
        require_plain_sgd(job)
        gpu = job["device"] == "cuda"
        context = mx.gpu(int(os.environ.get("LOCAL_RANK", "0"))) if gpu else mx.cpu()
        self.job, self.world = job, world
        self.synchronises = world > 1 and job["synchronise"]
        self.network = Network(job, context)
        self.network.hybridize(static_alloc=True, static_shape=True)
        self.data = [
            [mx.nd.array(value, ctx=context) for value in batch.values()]
            for batch in batches(job, rank, world)
        ]
        trained = [p for p in self.network.collect_params().values() if p.grad_req != "null"]
        self.parameters = sum(int(np.prod(parameter.shape)) for parameter in trained)
        self.settings = {
            "learning_rate": job["optimiser"]["learning_rate"],
            "momentum": job["optimiser"]["momentum"],
            "wd": job["optimiser"]["weight_decay"],
        }
        self.store = self.connect() if world > 1 else None
        self.trainer = self.make_trainer(self.synchronises)
        if self.synchronises and not UPDATES_AT_SERVER:
            self.share_weights()

    def connect(self) -> Any:
        """Return the store of all ranks."""
        return mx.kv.create(os.environ.get("PACELINE_MXNET_KVSTORE", "dist_sync"))

    def make_trainer(self, synchronises: bool) -> gluon.Trainer:
        """A trainer that exchanges gradients through the store, or a local one."""
        return gluon.Trainer(
            self.network.collect_params(),
            "sgd",
            self.settings,
            kvstore=self.store if synchronises else None,
            update_on_kvstore=UPDATES_AT_SERVER if synchronises else False,
        )

    def share_weights(self) -> None:
        """Copy the store's weights to every rank before any rank sends gradients.

        The trainer would do so within its first step, without a barrier: in one of three launches a
        rank trained with wrong weights. If the server updates weights, this would wait forever and
        is not needed.
        """
        self.trainer._init_kvstore()
        self.trainer._init_params()
        self.barrier()

    def gradients(self, index: int) -> Any:
        with autograd.record():
            loss = self.network(*self.data[index % len(self.data)])
        loss.backward()
        return loss

    def step(self, index: int) -> Any:
        """Run one optimiser step; the store sums gradients, so they are divided by the ranks."""
        loss = self.gradients(index)
        self.trainer.step(self.world if self.synchronises else 1)
        return loss

    def wait(self, handle: Any) -> None:
        mx.nd.waitall()

    def loss_value(self, handle: Any) -> float:
        return float(handle.asscalar())

    def barrier(self) -> None:
        mx.nd.waitall()
        if self.store is not None:
            self.store._barrier()

    def parts(self) -> dict[str, Callable[[int], Any]]:
        """All parts; the collective only if the workers update weights."""
        alone = self.make_trainer(synchronises=False)

        def forward(index: int) -> Any:
            with autograd.record():
                return self.network(*self.data[index % len(self.data)])

        def local_step(index: int) -> Any:
            loss = self.gradients(index)
            alone.step(1)
            return loss

        parts: dict[str, Callable[[int], Any]] = {
            "forward": forward,
            "forward_backward": self.gradients,
            "local_step": local_step,
        }
        if self.synchronises and not UPDATES_AT_SERVER:
            parts["collective"] = lambda index: self.trainer.allreduce_grads()
        return parts

    def close(self) -> None:
        """Notify scheduler and server that this rank leaves; they end after the last."""
        LEAVING.set()
        if self.store is not None:
            mx.base.check_call(mx.base._LIB.MXKVStoreFree(self.store.handle))
        for role in ROLES:
            try:
                role.wait(timeout=FAREWELL_SECONDS)
            except subprocess.TimeoutExpired:
                role.kill()


if __name__ == "__main__":
    run_worker(KvstoreTraining, versions)
