"""Convolutions with fewer multiplications: counts of the algorithm, and when it pays."""

import dataclasses

import numpy as np
import pytest
from builders import kernel_times

from paceline.hardware.catalogue import device
from paceline.predictor.kernels.winograd import TransformedProducts
from paceline.workload.zoo.network_builder import NetworkBuilder

ROLES = ("forward", "weight_gradient", "input_gradient")


def products(channels, filters, positions, window):
    """The three products of a convolution as the workload has them."""
    depth = channels * window**2
    sizes = [(filters, positions, depth), (filters, depth, positions), (depth, positions, filters)]
    m, n, k = (np.array(each, dtype=float) for each in zip(*sizes, strict=True))
    return m, n, k, np.ones(3)


@pytest.mark.parametrize(("window", "spared", "swollen"), [(3, 4.0, 36 / 16), (5, 25 / 9, 36 / 4)])
def test_multiplications_and_moved_numbers_are_those_of_the_algorithm(window, spared, swollen):
    sizes = products(64, 128, 3200, window)
    found = TransformedProducts(sizes, ROLES, [window] * 3)
    assert found.applies.all()
    assert 2.0 * np.prod(sizes, axis=0) / found.flops == pytest.approx(spared)
    assert found.elements == pytest.approx((1 + swollen) * (64 + 128) * 3200)
    for sides in zip(found.m, found.n, found.k, strict=True):
        assert sorted(sides) == pytest.approx(sorted([64, 128, 3200 / (7 - window) ** 2]))


def test_other_products_are_left_alone():
    found = TransformedProducts(products(64, 128, 3200, 1), ROLES, [1, 0, 7])
    assert not found.applies.any()


def gain(channels, place=None, precision="fp32"):
    """Rate of a convolution with a window of 3 over that of one with a window of 1."""

    def rate(window):
        net = NetworkBuilder("two_convolutions")
        fed = net.conv("first", net.image(channels, 56, 56), channels, 1)
        graph = net.build(net.conv("second", fed, channels, window, padding=window // 2))
        cost = graph.cost(64)
        _, time = kernel_times(cost, place or device("p100_sxm2"), precision)
        return cost.layers[1].forward_flops / time.forward_seconds

    return rate(3) / rate(1)


def test_transforms_weigh_less_on_more_channels():
    assert 1.0 < gain(64) < gain(256) < gain(1024) < 4.0


def test_slow_memory_makes_it_pay_less():
    p100 = device("p100_sxm2")
    slow = dataclasses.replace(p100, memory_bandwidth=p100.memory_bandwidth / 2)
    assert gain(1024, slow) < gain(1024, p100)


def test_matrix_units_multiply_all():
    assert gain(1024, device("v100"), "amp_fp16") < 1.2
