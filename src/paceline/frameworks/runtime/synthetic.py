"""Synthetic inputs, labels and initial weights, bit for bit equal in every framework.

The generator is counter-based: a word is a pure function of (seed, stream, index), so that any rank
can generate any part of any batch independently. In integers modulo
2**64 (``^`` exclusive or, ``>>`` logical shift):

    mix(z):    z ^= z >> 30;  z *= 0xBF58476D1CE4E5B9
               z ^= z >> 27;  z *= 0x94D049BB133111EB;  z ^= z >> 31      (SplitMix64's finaliser)
    hash(s):   h = 0xCBF29CE484222325; for each byte b of s in UTF-8: h = (h ^ b) * 0x100000001B3
    key:       mix(mix(seed) + hash(stream))
    word(i):   mix(key + (i + 1) * 0x9E3779B97F4A7C15)

From a word ``w``:

    real:      the upper 24 bits of w, read as a signed number, times 2**-23: a multiple of 2**-23
               in [-1, 1), so exact in float32 and in float64
    integer:   ((w >> 33) * bound) >> 31, in [0, bound) for a bound below 2**31
    scaled:    the real times a float32 scale, one rounding in float32

Streams are named ``input/<input>`` (labels are inputs) and ``weight/<parameter>``. Sample ``s``
of an input with ``e`` elements takes the indices s*e to s*e + e - 1 in row-major order. A
parameter takes indices from 0 in PyTorch's layout of its shape (output features first); a
framework with another layout generates the same numbers and transposes them. `initial_scale`
returns the scale.

Standard library only. `word`, `real` and `integer` are the definition;
`array_words`, `reals_from_words` and `integers_from_words` are the same on whole int64 arrays of
NumPy or PyTorch, whose arithmetic wraps around on overflow as the definition requires.
"""

import array
import math
import struct
from typing import Any

_MASK = 2**64 - 1
# 2**64 over the golden ratio, and the multipliers of SplitMix64 (Steele, Lea and Flood 2014).
_GOLDEN = 0x9E3779B97F4A7C15
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB
REAL_STEP = 2.0**-23
"""Distance between neighbouring reals."""


def mix(z: int) -> int:
    """SplitMix64's finaliser, a bijection of 64-bit integers (Steele, Lea and Flood 2014)."""
    z = ((z ^ (z >> 30)) * _FIRST) & _MASK
    z = ((z ^ (z >> 27)) * _SECOND) & _MASK
    return z ^ (z >> 31)


def stream_key(seed: int, stream: str) -> int:
    h = 0xCBF29CE484222325
    for byte in stream.encode():
        h = ((h ^ byte) * 0x100000001B3) & _MASK
    return mix((mix(seed & _MASK) + h) & _MASK)


def word(key: int, index: int) -> int:
    """The word at ``index`` of the stream with this key, as an unsigned integer."""
    return mix((key + (index + 1) * _GOLDEN) & _MASK)


def real(key: int, index: int) -> float:
    return (_signed(word(key, index)) >> 40) * REAL_STEP


def integer(key: int, index: int, bound: int) -> int:
    return ((word(key, index) >> 33) * bound) >> 31


def reals(key: int, start: int, count: int) -> "array.array[float]":
    return array.array("f", (real(key, index) for index in range(start, start + count)))


def integers(key: int, start: int, count: int, bound: int) -> "array.array[int]":
    return array.array("q", (integer(key, index, bound) for index in range(start, start + count)))


def array_words(key: int, indices: Any) -> Any:
    """`word` of every index of an int64 array (NumPy, PyTorch), as signed int64."""
    z = (indices + 1) * _signed(_GOLDEN) + _signed(key)
    z = (z ^ _shifted(z, 30)) * _signed(_FIRST)
    z = (z ^ _shifted(z, 27)) * _signed(_SECOND)
    return z ^ _shifted(z, 31)


def reals_from_words(words: Any) -> Any:
    """Numerators of the reals: as float32, times `REAL_STEP`, they are the reals."""
    return words >> 40


def integers_from_words(words: Any, bound: int) -> Any:
    return (_shifted(words, 33) * bound) >> 31


def initial_scale(parameter: str, shape: "list[int] | tuple[int, ...]", kind: str) -> float:
    """Half-width of the interval of initial values of a weight, as a float32; 0.0 for zeros.

    ``kind`` is the operation of the parameter's node. Biases start at zero, the weights of
    normalisations at one (`starts_at_one`). Convolutions keep the variance of rectified inputs (He
    et al. 2015), other layers that of their inputs; embeddings have a standard deviation of 0.02.
    The fan-in is the last dimension of the shape; for a convolution, all dimensions but the first.
    """
    if "bias" in parameter.rsplit(".", 1)[-1]:
        return 0.0
    if kind in ("embedding", "position_embedding"):
        return float32(0.02 * math.sqrt(3.0))
    if kind == "conv":
        return float32(math.sqrt(6.0 / math.prod(shape[1:])))
    return float32(math.sqrt(3.0 / shape[-1]))


def starts_at_one(parameter: str, kind: str) -> bool:
    """Whether a parameter is the scale of a normalisation."""
    return kind.endswith("_norm") and "bias" not in parameter.rsplit(".", 1)[-1]


def shuffled(count: int, seed: int, epoch: int) -> list[int]:
    """The integers below ``count``, sorted by their words in stream ``order/<epoch>``."""
    key = stream_key(seed, f"order/{epoch}")
    return sorted(range(count), key=lambda index: word(key, index))


def float32(value: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


def _shifted(z: Any, bits: int) -> Any:
    """Logical right shift of signed int64: the arithmetic shift with the sign bits masked."""
    return (z >> bits) & ((1 << (64 - bits)) - 1)
