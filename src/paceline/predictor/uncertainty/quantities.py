"""The quantities that are fitted to published measurements, and their factors.

docs/explanation/constants.md lists what each factor buys on held-out rows.
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
        # Rows of one program or machine are not independent. A job has a program and a machine
        # of its own, so their effects are estimated with the rest and only the variance is kept.
        Factor("program", 0.15, grouping=True),
        Factor("machine+width", 0.1, grouping=True),
    ),
)
"""Log of measured over predicted time of a single device."""

UNHIDDEN = Quantity("unhidden", -2.0, 0.7)
"""Logit of the share of hidden communication that lengthens the step."""

BANDWIDTH = Quantity("bandwidth", 0.0, 0.2, (Factor("link", 0.2), Factor("framework", 0.2)))
"""Log of measured over predicted speed of communication."""

VARIATION = Quantity("variation", math.log(0.01), 1.0, (Factor("reach+kind", 0.5),))
"""Log of the coefficient of variation of workers' times."""

SCALING = (UNHIDDEN, BANDWIDTH, VARIATION)
QUANTITIES = (COMPUTING, *SCALING)

SMALL_MOVE = 0.2
"""Step of the numerical derivatives, on the scale of the quantity."""
