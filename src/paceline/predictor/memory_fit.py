"""Whether a job fits in the memory of its devices: a probability, since predictions err."""

import math

from paceline.constants import number
from paceline.predictor.prediction import Prediction


def fits_probability(prediction: Prediction) -> float | None:
    """Probability that a job fits; None where the memory of the device is not known.

    Measured peaks over predicted ones were seen to scatter like a lognormal; what the context
    of a process and its libraries take is not the job's.
    """
    capacity = prediction.cluster.device.memory_bytes
    if capacity is None:
        return None
    room = capacity * (1.0 - number("spread.memory.reserved_share"))
    needed = float(prediction.memory.total_bytes)
    if needed <= 0:
        return None
    margin = math.log(room / needed) - number("corrections.memory.bias")
    return 0.5 * math.erfc(-margin / (number("corrections.memory.deviation") * math.sqrt(2.0)))
