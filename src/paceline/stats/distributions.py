"""Tail probabilities and quantiles of Student's t and Fisher's F, from SciPy.

``scipy.special`` is imported on first use: the import takes 0.2 s, too long for ``--help``.
"""

SIGNIFICANCE = 0.05
"""Significance level of every test."""


def lower_tail(t: float, degrees_of_freedom: float) -> float:
    """Probability of a value below ``t`` under Student's t distribution."""
    from scipy.special import stdtr

    return float(stdtr(degrees_of_freedom, t))


def upper_quantile(probability: float, degrees_of_freedom: float) -> float:
    """The value that Student's t exceeds with this ``probability``."""
    from scipy.special import stdtrit

    return -float(stdtrit(degrees_of_freedom, probability))


def f_upper_tail(ratio: float, numerator: float, denominator: float) -> float:
    """Probability of an F ratio above ``ratio`` with these degrees of freedom."""
    from scipy.special import fdtrc

    return 1.0 if ratio <= 0.0 else float(fdtrc(numerator, denominator, ratio))
