"""Constants learned from measured layers."""

import pytest

from paceline.errors import InputError
from paceline.hardware.catalogue import device
from paceline.predictor.compute import layer_times
from paceline.predictor.efficiency import load_efficiency
from paceline.predictor.efficiency_fit import LayerSample, fit_efficiency
from paceline.predictor.step_costs import LayerTime
from paceline.workload import zoo

TRUTH = {"vector.ceiling": 0.6, "memory.batch_norm": 0.4, "memory.activation": 0.7}


def sample(network, batch, efficiency):
    cost = zoo.build(network).cost(batch)
    measured = layer_times(cost, device("v100"), "fp32", efficiency)
    return LayerSample(cost, device("v100"), "fp32", tuple(measured))


def test_constants_that_made_the_times_are_found_again():
    truth = load_efficiency().with_constants(TRUTH)
    samples = [sample("resnet20", 256, truth), sample("resnet20", 64, truth)]
    fit = fit_efficiency(samples, list(TRUTH), prior_weight=1e-3)
    for name, value in TRUTH.items():
        assert fit.efficiency.constants()[name] == pytest.approx(value, rel=0.02)
    assert fit.error_after < 0.02 < fit.error_before


def test_what_was_learned_holds_for_another_network():
    truth = load_efficiency().with_constants(TRUTH)
    fit = fit_efficiency([sample("resnet20", 256, truth)], list(TRUTH), prior_weight=1e-3)
    cost = zoo.build("resnet56").cost(128)
    expected = layer_times(cost, device("v100"), "fp32", truth)
    learned = layer_times(cost, device("v100"), "fp32", fit.efficiency)
    assert sum(x.forward_seconds for x in learned) == pytest.approx(
        sum(x.forward_seconds for x in expected), rel=0.03
    )


def test_a_strong_prior_holds_the_constants():
    truth = load_efficiency().with_constants(TRUTH)
    fit = fit_efficiency([sample("resnet20", 64, truth)], list(TRUTH), prior_weight=100.0)
    usual = load_efficiency().constants()
    for name in TRUTH:
        assert fit.efficiency.constants()[name] == pytest.approx(usual[name], rel=0.05)


def test_a_device_can_have_a_factor_of_its_own():
    usual = load_efficiency()
    truth = usual.with_constants({"devices.v100_sxm2_16gb.products": 0.5})
    names = ["devices.v100_sxm2_16gb.products", "devices.v100_sxm2_16gb.memory"]
    fit = fit_efficiency([sample("resnet20", 512, truth)], names, prior_weight=1e-3)
    assert fit.efficiency.constants()[names[0]] == pytest.approx(0.5, rel=0.05)
    assert fit.efficiency.constants()[names[1]] == pytest.approx(1.0, rel=0.05)


def test_layers_of_another_network_are_refused():
    cost = zoo.build("resnet20").cost(64)
    strange = LayerSample(cost, device("v100"), "fp32", (LayerTime("nowhere", 1.0, 1.0),))
    with pytest.raises(InputError, match=r"no measured layer has the name"):
        fit_efficiency([strange], ["vector.ceiling"])
    with pytest.raises(InputError, match=r"needs measured layers"):
        fit_efficiency([], ["vector.ceiling"])
