"""The quantities that are fitted to published measurements, and their factors.

Effects transfer only where physics allows it: losses of a program on PCIe machines say nothing
about NVLink machines, so effects of programs are crossed with the family of the slowest link
(``reach``), and the variation of workers with the link itself.
"""

import math

from paceline.predictor.uncertainty.mixed_effects import Factor, Quantity

_TUNING = {"plain": 0.1, "tuned": -0.3}
"""Priors, not fitted: fused kernels, CUDA graphs and no padding against unmodified scripts."""

COMPUTING = Quantity(
    "computing",
    0.0,
    0.3,
    (
        Factor("base+kind", 0.1),
        Factor("tuning+kind", 0.2, expected=_TUNING),
        Factor("compiler+kind+width", 0.2, optional=True),
        Factor("model", 0.2),
        Factor("vendor", 0.3),
        Factor("generation+kind+width", 0.1),
        Factor("work", 0.15),
        Factor("site+width", 0.1),
    ),
)
"""Log of measured over predicted time of a single device."""

UNHIDDEN = Quantity("unhidden", -2.0, 0.7, (Factor("framework", 0.5), Factor("script+reach", 0.7)))
"""Logit of the share of hidden communication that lengthens the step."""

BANDWIDTH = Quantity(
    "bandwidth",
    0.0,
    0.2,
    (Factor("reach", 0.2), Factor("link", 0.2), Factor("framework", 0.2)),
)
"""Log of measured over predicted speed of communication."""

VARIATION = Quantity(
    "variation",
    math.log(0.01),
    1.0,
    (Factor("reach+kind", 0.5), Factor("script+link", 0.7)),
)
"""Log of the coefficient of variation of workers' times."""

OVERHEAD = Quantity("overhead", math.log(0.001), 1.0, (Factor("framework+kind", 0.7),))
"""Log of the seconds per step that more than one replica costs, independent of size."""

SCALING = (UNHIDDEN, BANDWIDTH, VARIATION, OVERHEAD)
QUANTITIES = (COMPUTING, *SCALING)

SMALL_MOVE = 0.2
"""Step of the numerical derivatives, on the scale of the quantity."""
