"""A constant of the predictor and its status."""

from dataclasses import dataclass
from enum import StrEnum


class ConstantStatus(StrEnum):
    """How the value of a constant was obtained."""

    FACT = "fact"
    """Stated by the source, e.g. the code of a library."""
    PRIOR = "prior"
    """An expert judgement, to be fitted or calibrated."""
    FITTED = "fitted"
    """Chosen so that predictions agree with the measurements in ``fitted_on``."""


@dataclass(frozen=True)
class Constant:
    """A number that predictions depend on, in SI units.

    ``name`` is file, table and key (``kernels.matrix.ceiling``). ``fitted_on``
    names the measurements of a fitted constant; otherwise it is empty.
    """

    name: str
    value: float
    unit: str
    source: str
    status: ConstantStatus
    fitted_on: str = ""
