"""ResNet-20 in TensorFlow under Horovod: a Keras 2 model in a compiled loop."""

import horovod.tensorflow as hvd
import tensorflow as tf
from keras import layers, optimizers
from keras_resnet import resnet20
from tensorflow_loop import batches, training_step
from timing import run, sizes

hvd.init()
model = resnet20(
    lambda x, pad: layers.Lambda(
        lambda v: tf.pad(v[:, ::2, ::2], [[0, 0], [0, 0], [0, 0], [pad, pad]])
    )(x)
)
optimiser = optimizers.SGD(0.01, momentum=0.9)
optimiser.build(model.trainable_variables)
train = training_step(model, optimiser, hvd.DistributedGradientTape)
data = batches(sizes().batch)
train(*data[0])
hvd.broadcast_variables(model.variables, root_rank=0)
hvd.broadcast_variables(optimiser.variables, root_rank=0)
run(lambda index: train(*data[index % 4]).numpy(), hvd.rank())
