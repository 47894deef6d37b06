"""The curves that predict, scored on measured kernels."""

import numpy as np

from paceline.analyse.validation.fitting.kernels import COLLECTIVES
from paceline.analyse.validation.fitting.shipped_kernels import shipped_errors, shipped_table


def test_every_kind_and_device_has_a_score_that_its_own_factor_improves():
    found = shipped_errors()
    assert {own.kind for own in found} == {"product", "attention", *COLLECTIVES}
    assert all(own.own <= own.error + 1e-3 for own in found)
    products = [own for own in found if own.kind == "product"]
    assert np.mean([own.error for own in products]) < 0.26
    assert np.mean([own.own for own in products]) < 0.11
    assert len(shipped_table().splitlines()) == len(found) + 2
