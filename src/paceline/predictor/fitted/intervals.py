"""90 % intervals of predicted throughput, from errors on measurements that were held out."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

BASELINE, COLD = "baseline", "cold"
SAME, NEAR, FAR, PLAIN = "same", "near", "far", "plain"
_NORMAL_QUANTILE = 1.645


@dataclass(frozen=True, slots=True)
class IntervalRule:
    """Quantiles of log(measured / predicted throughput), in units of ``floor + slope x share``.

    ``share`` is the part of the step that many devices add to one: what is predicted to be
    large is predicted less well. ``rows`` errors made the rule.
    """

    floor: float
    slope: float
    low: float
    high: float
    rows: int

    def bounds(self, throughput: float, share: float) -> tuple[float, float]:
        """Lower and upper bound of the throughput."""
        scale = self.floor + self.slope * share
        return throughput * math.exp(self.low * scale), throughput * math.exp(self.high * scale)

    def standard_error(self, share: float) -> float:
        """The standard error of the logarithm whose 90 % interval is as wide."""
        scale = self.floor + self.slope * share
        return 0.5 * (self.high - self.low) * scale / _NORMAL_QUANTILE


@dataclass(frozen=True)
class Intervals:
    """Rules by mode (``baseline``, ``cold``) and distance (``same``, ``near``, ``far``).

    Near is a training program of which other measurements were fitted, far one of which none
    was; the same are shapes of work that were measured in another layout or number. ``plain``
    is the predictor without any fitted effect, on everything or on one kind of work
    (`plain_distance`).
    """

    rules: Mapping[str, Mapping[str, IntervalRule]]

    def rule(self, mode: str, distance: str) -> IntervalRule:
        """The rule of a prediction."""
        return self.rules[mode][distance]

    def plain_rule(self, mode: str, kind: str, width: str) -> IntervalRule:
        """The rule of the predictor alone on a kind of work, else on everything."""
        rules = self.rules[mode]
        return rules.get(plain_distance(kind, width), rules[PLAIN])


def plain_distance(kind: str, width: str) -> str:
    """Name of the predictor's rule for samples of a kind (image, text) at a width of numbers."""
    return f"{PLAIN}-{kind}-{width}"
