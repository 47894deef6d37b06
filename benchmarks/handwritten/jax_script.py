"""ResNet-20 on CIFAR-sized images in plain JAX."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from timing import run, sizes

random = np.random.default_rng(0)


def conv_weight(width_in: int, width: int) -> np.ndarray:
    return random.normal(0, (2 / 9 / width_in) ** 0.5, (3, 3, width_in, width)).astype("f4")


def norm_weight(width: int) -> tuple[np.ndarray, np.ndarray]:
    return np.ones(width, "f4"), np.zeros(width, "f4")


def conv(x: jax.Array, weight: jax.Array, stride: int = 1) -> jax.Array:
    numbers = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(
        x, weight, (stride, stride), [(1, 1), (1, 1)], dimension_numbers=numbers
    )


def norm(x: jax.Array, weight: tuple, running: tuple) -> tuple[jax.Array, tuple]:
    # E[x^2] - E[x]^2, as Flax's BatchNorm does by default (use_fast_variance).
    mean = jnp.mean(x, (0, 1, 2))
    variance = jnp.mean(jnp.square(x), (0, 1, 2)) - jnp.square(mean)
    scale, shift = weight
    kept = tuple(0.9 * old + 0.1 * new for old, new in zip(running, (mean, variance), strict=True))
    # One factor per channel, as in Flax: XLA then sums one product per channel for its gradient.
    return (x - mean) * (lax.rsqrt(variance + 1e-5) * scale) + shift, kept


SHAPES = [
    (16 * 2 ** max(stage - (block == 0), 0), 16 * 2**stage, 2 if stage and block == 0 else 1)
    for stage in range(3)
    for block in range(3)
]


def loss_of(weights: dict, running: list, images: jax.Array, labels: jax.Array) -> tuple:
    kept = []

    def normed(x: jax.Array, weight: tuple) -> jax.Array:
        y, new = norm(x, weight, running[len(kept)])
        kept.append(new)
        return y

    x = jax.nn.relu(normed(conv(images, weights["conv"]), weights["norm"]))
    for (width_in, width, stride), (c1, n1, c2, n2) in zip(SHAPES, weights["blocks"], strict=True):
        y = jax.nn.relu(normed(conv(x, c1, stride), n1))
        y = normed(conv(y, c2), n2)
        pad = (width - width_in) // 2
        x = jnp.pad(x[:, ::stride, ::stride], [(0, 0), (0, 0), (0, 0), (pad, pad)])
        x = jax.nn.relu(x + y)
    scores = jnp.mean(x, (1, 2)) @ weights["fc"] + weights["bias"]
    chosen = jnp.take_along_axis(jax.nn.log_softmax(scores), labels[:, None], 1)
    return -jnp.mean(chosen), kept


@partial(jax.jit, donate_argnums=(0, 1, 2))
def train(
    weights: dict, velocities: dict, running: list, images: jax.Array, labels: jax.Array
) -> tuple:
    slopes = jax.value_and_grad(loss_of, has_aux=True)
    (loss, running), gradients = slopes(weights, running, images, labels)
    velocities = jax.tree.map(lambda v, g: 0.9 * v + g, velocities, gradients)
    return jax.tree.map(lambda w, v: w - 0.01 * v, weights, velocities), velocities, running, loss


weights = {
    "conv": conv_weight(3, 16),
    "norm": norm_weight(16),
    "blocks": [
        (conv_weight(a, b), norm_weight(b), conv_weight(b, b), norm_weight(b)) for a, b, _ in SHAPES
    ],
    "fc": random.normal(0, 0.1, (64, 10)).astype("f4"),
    "bias": np.zeros(10, "f4"),
}
running = [norm_weight(16)[::-1]]
for _, width, _ in SHAPES:
    running += [norm_weight(width)[::-1]] * 2
batch = sizes().batch
data = [
    (
        jnp.asarray(random.uniform(-1, 1, (batch, 32, 32, 3)).astype("f4")),
        jnp.asarray(random.integers(0, 10, batch)),
    )
    for _ in range(4)
]
state = [jax.tree.map(jnp.asarray, weights), jax.tree.map(jnp.zeros_like, weights), running]


def step(index: int) -> None:
    *new, loss = train(*state, *data[index % 4])
    state[:] = new
    jax.block_until_ready((state, loss))


run(step)
