"""One number of the predictor, with where it comes from."""

from dataclasses import dataclass
from enum import StrEnum


class ConstantStatus(StrEnum):
    """How a number came to be what it is."""

    FACT = "fact"
    """Read from a source that states it, such as a library's own code."""
    PRIOR = "prior"
    """A judgement, to be fitted or calibrated."""
    FITTED = "fitted"
    """Chosen so that predictions agree with the measurements in ``fitted_on``."""


@dataclass(frozen=True)
class Constant:
    """A number that predictions depend on, in SI units.

    ``name`` is its file and the keys that lead to it (``kernels.matrix.ceiling``). ``fitted_on``
    are the measurements it was fitted on, empty unless it was.
    """

    name: str
    value: float
    unit: str
    source: str
    status: ConstantStatus
    fitted_on: str = ""
