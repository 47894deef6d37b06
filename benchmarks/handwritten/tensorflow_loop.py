"""What the TensorFlow scripts share: threads, batches, and a compiled step of a Keras model."""

from collections.abc import Callable

import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(2)


def batches(batch: int) -> list[tuple[tf.Tensor, tf.Tensor]]:
    return [
        (tf.random.uniform((batch, 32, 32, 3)), tf.random.uniform((batch,), 0, 10, tf.int32))
        for _ in range(4)
    ]


def training_step(
    model: object, optimiser: object, share: Callable[[object], object] = lambda tape: tape
) -> Callable[..., tf.Tensor]:
    @tf.function
    def train(images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            scores = model(images, training=True)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, scores)
            loss = tf.reduce_mean(losses)
        gradients = share(tape).gradient(loss, model.trainable_variables)
        optimiser.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    return train
