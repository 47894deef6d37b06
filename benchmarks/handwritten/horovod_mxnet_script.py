"""ResNet-20 in MXNet under Horovod."""

import horovod.mxnet as hvd
from mxnet_resnet import batches, resnet20, training_step
from timing import run, sizes

hvd.init()
model = resnet20()
parameters = model.collect_params()
hvd.broadcast_parameters(parameters, root_rank=0)
settings = {"learning_rate": 0.01, "momentum": 0.9}
trainer = hvd.DistributedTrainer(parameters, "sgd", settings)
data = batches(sizes().batch)
run(training_step(model, trainer, data, 1), hvd.rank())
