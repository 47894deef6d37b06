"""Whether a job fits in the memory of its devices: a probability, since predictions err."""

import math
from typing import TYPE_CHECKING

from paceline.constants import number

if TYPE_CHECKING:
    from paceline.predictor.prediction import Prediction


def fits_probability(prediction: "Prediction") -> float | None:
    """Probability that a job fits; None where the memory of the device is not known."""
    needed = float(prediction.memory.total_bytes)
    return fits_in(needed, prediction.cluster.device.memory_bytes)


def room_bytes(capacity: float) -> float:
    """Most bytes that a job may be predicted to need to fit, as likely as not, in ``capacity``.

    The context of a process and its libraries take a share; what predictions were off by as a
    rule is set right.
    """
    free = capacity * (1.0 - number("spread.memory.reserved_share"))
    return free * math.exp(-number("corrections.memory.bias"))


def fits_in(needed: float, capacity: float | None) -> float | None:
    """Probability that what needs ``needed`` bytes as predicted fits in a device of so many.

    Measured peaks over predicted ones were seen to scatter like a lognormal.
    """
    if capacity is None or needed <= 0:
        return None
    margin = math.log(room_bytes(capacity) / needed)
    return 0.5 * math.erfc(-margin / (number("corrections.memory.deviation") * math.sqrt(2.0)))
