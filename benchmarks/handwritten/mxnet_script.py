"""ResNet-20 in MXNet: alone, or with a parameter server that updates the weights.

KVSTORE is `dist_sync` or `dist_async` for the server, which rank 0 then starts.
"""

import os
import subprocess
import sys

import mxnet as mx
from mxnet import gluon
from mxnet_resnet import batches, resnet20, training_step
from timing import run, sizes

world, kind = int(os.environ["WORLD_SIZE"]), os.environ.get("KVSTORE")
if kind:
    os.environ.update(
        DMLC_PS_ROOT_URI=os.environ["MASTER_ADDR"],
        DMLC_PS_ROOT_PORT=os.environ["MASTER_PORT"],
        DMLC_NODE_HOST=os.environ["MASTER_ADDR"],
        DMLC_NUM_SERVER="1",
        DMLC_NUM_WORKER=str(world),
        DMLC_ROLE="worker",
    )
    if os.environ["RANK"] == "0":
        command = [sys.executable, "-c", "import mxnet"]
        for role in ("scheduler", "server"):
            variables = {**os.environ, "DMLC_ROLE": role}
            subprocess.Popen(command, env=variables)  # ends when the workers have

model = resnet20()
settings = {"learning_rate": 0.01, "momentum": 0.9}
store = mx.kv.create(kind) if kind else None
trainer = gluon.Trainer(
    model.collect_params(), "sgd", settings, kvstore=store, update_on_kvstore=bool(kind)
)
data = batches(sizes().batch)
run(training_step(model, trainer, data, world))
