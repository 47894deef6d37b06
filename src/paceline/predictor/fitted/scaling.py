"""From a device alone to a step of many: what published scaling curves add to the predictor.

step = alone (1 + variation g(N)) + (exposed + share (message - exposed)) / bandwidth + overhead

``exposed`` and ``message`` come from the scheduler (`paceline.predict`): exchange of gradients
under the framework's policy, and if nothing of it were hidden. g(N) is the expected largest of
N standard normal draws: a step ends with its slowest worker.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from paceline.predictor.fitted.circumstances import Circumstances
from paceline.predictor.fitted.computing import COMPUTING
from paceline.predictor.fitted.effects import Effects, Factor, Quantity
from paceline.predictor.jitter import expected_maximum_normal

FloatArray = npt.NDArray[np.float64]
Number = float | FloatArray

UNHIDDEN = Quantity("unhidden", -2.0, 0.7, (Factor("script", 1.0),))
"""Share of the hidden exchange that shows after all, as a logit."""
BANDWIDTH = Quantity("bandwidth", 0.0, 0.3, (Factor("link", 0.4), Factor("site", 0.3)))
"""Speed of the exchange over the predictor's, as a logarithm."""
VARIATION = Quantity(
    "variation", float(np.log(0.015)), 1.0, (Factor("framework+width", 0.6), Factor("script", 0.8))
)
"""Coefficient of variation of workers' times, as a logarithm."""
ACROSS_NODES = Quantity("variation_across_nodes", 0.3, 0.5)
"""What several nodes add to the logarithm of the variation."""
OVERHEAD = Quantity("overhead", float(np.log(0.002)), 1.0, (Factor("framework+kind", 1.0),))
"""Seconds per step that a second replica costs whatever its size, as a logarithm."""

SCALING = (UNHIDDEN, BANDWIDTH, VARIATION, ACROSS_NODES, OVERHEAD)


_NEVER = -50.0
PREDICTOR_ALONE = Effects(
    {
        UNHIDDEN.name: _NEVER,
        BANDWIDTH.name: 0.0,
        VARIATION.name: _NEVER,
        ACROSS_NODES.name: 0.0,
        OVERHEAD.name: _NEVER,
        COMPUTING.name: 0.0,
    }
)
"""Effects that add nothing: the scheduler and the catalogue as they are."""


@dataclass(frozen=True, slots=True)
class ScalingTerms:
    """The quantities on their natural scale; numbers or arrays, one per row."""

    share: Number
    bandwidth: Number
    variation: Number
    overhead_seconds: Number


def scaling_terms(
    unhidden: Number, bandwidth: Number, variation: Number, overhead: Number
) -> ScalingTerms:
    """Terms from values on the linear scale (``variation`` with what several nodes add)."""
    return ScalingTerms(
        1.0 / (1.0 + np.exp(-np.asarray(unhidden))),
        np.exp(bandwidth),
        np.exp(variation),
        np.exp(overhead),
    )


def terms_for(effects: Effects, circumstances: Circumstances, nodes: int) -> ScalingTerms:
    """The terms of one job."""
    variation = effects.value(VARIATION.name, circumstances)
    if nodes > 1:
        variation += effects.value(ACROSS_NODES.name, circumstances)
    return scaling_terms(
        effects.value(UNHIDDEN.name, circumstances),
        effects.value(BANDWIDTH.name, circumstances),
        variation,
        effects.value(OVERHEAD.name, circumstances),
    )


def added_seconds(
    terms: ScalingTerms,
    alone_seconds: Number,
    exposed_seconds: Number,
    message_seconds: Number,
    slowest: Number,
) -> Number:
    """What a step takes beyond one device alone, for ``slowest`` = g(N) of more than one."""
    shown = exposed_seconds + terms.share * np.maximum(message_seconds - exposed_seconds, 0.0)
    return (
        alone_seconds * terms.variation * slowest + shown / terms.bandwidth + terms.overhead_seconds
    )


@lru_cache(maxsize=512)
def slowest_of(workers: int) -> float:
    """g(N): the expected largest of ``workers`` standard normal draws; 0 for one."""
    return float(expected_maximum_normal(0.0, 1.0, workers)) if workers > 1 else 0.0
