"""How much longer a device computes than the catalogue's rooflines say."""

import math

from paceline.predictor.fitted.circumstances import Circumstances
from paceline.predictor.fitted.effects import Effects, Factor, Quantity

COMPUTING = Quantity(
    "computing",
    0.0,
    0.5,
    (
        Factor("base+kind+width", 0.2),
        Factor("compiler+kind+width", 0.2),
        Factor("model", 0.2),
        Factor("site", 0.1),
        Factor("program", 0.25),
        Factor("kernel", 0.1),
    ),
)
"""Time of a device alone over the predicted one, as a logarithm."""


def computing_factor(effects: Effects, circumstances: Circumstances) -> float:
    """Factor on the predicted time of a device alone."""
    return math.exp(effects.value(COMPUTING.name, circumstances))
