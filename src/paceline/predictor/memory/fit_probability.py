"""The probability that a job fits in device memory."""

import math
from statistics import NormalDist
from typing import TYPE_CHECKING

from paceline.constants import number

if TYPE_CHECKING:
    from paceline.predictor.prediction import Prediction


def fits_probability(prediction: "Prediction") -> float | None:
    """Probability that a job fits; None if the memory of the device is unknown."""
    needed = float(prediction.memory.total_bytes)
    return fits_in(needed, prediction.cluster.device.memory_bytes)


LIKELY = 0.8
"""Probability of fitting of plans that are recommended if there is a choice."""


def room_bytes(capacity: float, probability: float = 0.5) -> float:
    """Largest predicted size that fits in ``capacity`` with a probability.

    CUDA context and libraries reserve a share; the mean bias of predictions is corrected.
    """
    free = capacity * (1.0 - number("spread.memory.reserved_share"))
    margin = number("corrections.memory.deviation") * NormalDist().inv_cdf(probability)
    return free * math.exp(-number("corrections.memory.bias") - margin)


def fits_in(needed: float, capacity: float | None) -> float | None:
    """Probability that a job with ``needed`` predicted bytes fits in ``capacity``.

    Measured over predicted peaks are modelled as lognormal (``corrections.memory``).
    """
    if capacity is None or needed <= 0:
        return None
    margin = math.log(room_bytes(capacity) / needed)
    return 0.5 * math.erfc(-margin / (number("corrections.memory.deviation") * math.sqrt(2.0)))
