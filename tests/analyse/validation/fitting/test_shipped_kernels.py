"""The curves that predict, scored on measured kernels."""

import numpy as np
import pytest

from paceline.analyse.validation.fitting.kernels import fitted_constants
from paceline.analyse.validation.fitting.shipped_kernels import shipped_errors, shipped_table
from paceline.constants import number


def test_every_kind_and_device_has_a_score_that_its_own_factor_improves():
    found = shipped_errors()
    errors = {}
    for own in found:
        assert own.own <= own.error + 1e-3
        errors.setdefault(own.kind, []).append(own.error)
    assert np.mean(errors["product"]) < 0.12
    assert np.mean(errors["attention"]) < 0.16
    assert np.mean(errors["collective"]) < 0.15
    assert len(shipped_table().splitlines()) == len(found) + 2


def test_the_constants_that_predict_are_those_fitted():
    fitted = fitted_constants()
    ceiling = fitted.pop("attention_ceiling")
    for name, value in fitted.items():
        if "." in name:
            assert number(name) == pytest.approx(value, rel=0.01), name
    attention = number("kernels.products.attention") * number("kernels.matrix.ceiling")
    assert attention == pytest.approx(ceiling, rel=0.01)
    gather, reduce = (f"libraries.nccl.variant.one-node-{kind}" for kind in ("gather", "reduce"))
    for name in ("start", "middle"):
        assert number(f"{gather}.{name}") == number(f"{reduce}.{name}")
