"""Whether a job fits in the memory of its devices: a probability, since predictions err."""

import math

from paceline.constants import number
from paceline.predictor.prediction import Prediction


def fits_probability(prediction: Prediction) -> float | None:
    """Probability that a job fits; None where the memory of the device is not known."""
    needed = float(prediction.memory.total_bytes)
    return fits_in(needed, prediction.cluster.device.memory_bytes)


def fits_in(needed: float, capacity: float | None) -> float | None:
    """Probability that what needs ``needed`` bytes as predicted fits in a device of so many.

    Measured peaks over predicted ones were seen to scatter like a lognormal; what the context
    of a process and its libraries take is not the job's.
    """
    if capacity is None or needed <= 0:
        return None
    room = capacity * (1.0 - number("spread.memory.reserved_share"))
    margin = math.log(room / needed) - number("corrections.memory.bias")
    return 0.5 * math.erfc(-margin / (number("corrections.memory.deviation") * math.sqrt(2.0)))
