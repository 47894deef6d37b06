"""ResNet-20 on CIFAR-sized images in plain TensorFlow: a Keras model in a compiled loop."""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"

import tensorflow as tf
from keras import Input, Model, layers
from timing import run, sizes

tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(2)


def conv(x: object, width: int, stride: int = 1) -> object:
    y = layers.Conv2D(width, 3, stride, "same", use_bias=False)(x)
    return layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(y)


def resnet20() -> Model:
    images = Input((32, 32, 3))
    x = layers.ReLU()(conv(images, 16))
    width_in = 16
    for stage, width in enumerate((16, 32, 64)):
        for block in range(3):
            stride = 2 if stage and block == 0 else 1
            y = conv(layers.ReLU()(conv(x, width, stride)), width)
            if stride > 1:
                pad = (width - width_in) // 2
                x = layers.Lambda(
                    lambda v, pad=pad: tf.pad(v[:, ::2, ::2], [[0, 0]] * 3 + [[pad, pad]])
                )(x)
            x = layers.ReLU()(layers.Add()([x, y]))
            width_in = width
    return Model(images, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))


model = resnet20()
weights = [weight.value for weight in model.trainable_weights]
velocities = [tf.Variable(tf.zeros_like(weight)) for weight in weights]
_, _, _, batch = sizes()
data = [
    (tf.random.uniform((batch, 32, 32, 3)), tf.random.uniform((batch,), 0, 10, tf.int32))
    for _ in range(4)
]


@tf.function
def train(images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    with tf.GradientTape() as tape:
        scores = model(images, training=True)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, scores)
        loss = tf.reduce_mean(losses)
    for weight, velocity, gradient in zip(
        weights, velocities, tape.gradient(loss, weights), strict=True
    ):
        tf.raw_ops.ResourceApplyMomentum(
            var=weight.handle, accum=velocity.handle, lr=0.01, grad=gradient, momentum=0.9
        )
    return loss


run(lambda index: train(*data[index % 4]).numpy())
