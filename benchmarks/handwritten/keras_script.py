"""ResNet-20 in Keras on TensorFlow or JAX (KERAS_BACKEND), trained as Keras does by itself."""

import keras
import numpy as np
from keras_resnet import resnet20
from timing import run, sizes

if keras.backend.backend() == "tensorflow":
    import tensorflow_loop  # noqa: F401  (holds TensorFlow to its threads)

model = resnet20()
model.compile(
    optimizer=keras.optimizers.SGD(0.01, momentum=0.9),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
)
random, batch = np.random.default_rng(0), sizes().batch
data = [
    (random.uniform(-1, 1, (batch, 32, 32, 3)).astype("f4"), random.integers(0, 10, batch))
    for _ in range(4)
]
run(lambda index: model.train_on_batch(*data[index % 4]))
