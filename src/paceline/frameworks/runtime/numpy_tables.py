"""Constants of sequence operations as NumPy arrays, for frameworks that take those."""

from functools import cache
from typing import Any

import numpy as np
from layer_settings import ROTARY_BASE

Array = Any


@cache
def rotary_turns(length: int, head_dim: int) -> tuple[Array, Array]:
    """Return cosine and sine of the angle of each position and pair, the same for all heads."""
    half = head_dim // 2
    angles = np.arange(length)[:, None, None] * ROTARY_BASE ** -(np.arange(half) / half)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


@cache
def causal_bias(queries: int, keys: int) -> Array:
    """Added to scores: minus infinity for a key after the query, otherwise zero.

    The last query is at the last key.
    """
    hidden = np.triu(np.ones((queries, keys), bool), 1 + keys - queries)
    return np.where(hidden, np.float32(-np.inf), np.float32(0.0))
