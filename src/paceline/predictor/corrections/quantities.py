"""The quantities that published measurements correct, and what each may depend on.

An effect travels only where physics lets it: what a program lost on machines joined by PCIe says
nothing of machines joined by NVLink, so effects of programs go with the family of the slowest link
(``reach``), and how much its workers vary with the link itself.
"""

import math

from paceline.predictor.corrections.hierarchy import Factor, Quantity

_TUNING = {"plain": 0.1, "tuned": -0.3}
"""Priors, not fitted: fused kernels, graphs and no padding against a script as it comes."""

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
"""Time of a device alone over the predicted one, as a logarithm."""

UNHIDDEN = Quantity("unhidden", -2.0, 0.7, (Factor("framework", 0.5), Factor("script+reach", 0.7)))
"""Share of the hidden exchange that shows after all, as a logit."""

BANDWIDTH = Quantity(
    "bandwidth",
    0.0,
    0.2,
    (Factor("reach", 0.2), Factor("link", 0.2), Factor("framework", 0.2)),
)
"""Speed of the exchange over the predicted one, as a logarithm."""

VARIATION = Quantity(
    "variation",
    math.log(0.01),
    1.0,
    (Factor("reach+kind", 0.5), Factor("script+link", 0.7)),
)
"""Coefficient of variation of workers' times, as a logarithm."""

OVERHEAD = Quantity("overhead", math.log(0.001), 1.0, (Factor("framework+kind", 0.7),))
"""Seconds per step that a second replica costs whatever its size, as a logarithm."""

SCALING = (UNHIDDEN, BANDWIDTH, VARIATION, OVERHEAD)
QUANTITIES = (COMPUTING, *SCALING)

SMALL_MOVE = 0.2
"""How far a quantity is moved, on its own scale, to see what the step does."""
