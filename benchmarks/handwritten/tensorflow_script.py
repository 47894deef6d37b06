"""ResNet-20 in TensorFlow: a Keras model in a compiled loop."""

from keras import optimizers
from keras_resnet import resnet20
from tensorflow_loop import batches, training_step
from timing import run, sizes

model = resnet20()
optimiser = optimizers.SGD(0.01, momentum=0.9)
optimiser.build(model.trainable_variables)
train, data = training_step(model, optimiser), batches(sizes().batch)
run(lambda index: train(*data[index % 4]).numpy())
