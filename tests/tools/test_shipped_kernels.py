"""The curves that predict, scored on measured kernels."""

import numpy as np
import pytest

from fitting.kernel_curves import curves, fitted_constants
from fitting.shipped_kernels import (
    PREDICTED,
    REPLAYED_LAUNCH_SECONDS,
    shipped_errors,
    shipped_table,
)
from paceline.constants import number


@pytest.mark.thorough
def test_every_kind_and_device_has_a_score_that_its_own_factor_improves():
    found = shipped_errors()
    errors = {}
    for own in found:
        assert own.own <= own.error + 1e-3
        errors.setdefault(own.kind, []).append(own.error)
    assert np.mean(errors["product"]) < 0.12
    assert np.mean(errors["attention"]) < 0.16
    assert np.mean(errors["collective"]) < 0.11
    assert len(shipped_table().splitlines()) == len(found) + 2


def test_the_constants_that_predict_are_those_fitted():
    fitted = fitted_constants()
    for name, value in fitted.items():
        if "." in name:
            assert number(name) == pytest.approx(value, rel=0.01), name
    launches = (fitted["launch"], fitted["attention_launch"])
    assert tuple(REPLAYED_LAUNCH_SECONDS.values()) == pytest.approx(launches, rel=0.02)
    gather, reduce = (f"libraries.nccl.variant.one-node-{kind}" for kind in ("gather", "reduce"))
    for name in ("start", "middle"):
        assert number(f"{gather}.{name}") == number(f"{reduce}.{name}")


@pytest.mark.parametrize("kind", ["product", "attention", "collective"])
def test_fitted_constants_are_shipped(kind):
    """On a device whose switch sums nothing; memory bounds two of the smallest products."""
    curve, points = curves()[kind]
    own = next(each for each in points if each.device.name == "a100_sxm_80gb")
    found = fitted_constants() | {"trtllm": 1.0}
    *shared, typical = np.log([found[name] for name in curve.names])
    assert PREDICTED[kind](own) == pytest.approx(
        curve.seconds(own, np.array(shared), typical), rel=0.06
    )
