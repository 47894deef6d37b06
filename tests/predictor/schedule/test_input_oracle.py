"""Input that is not prefetched precedes the step: it adds its whole time under every policy."""

from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from paceline.hardware import catalogue
from paceline.predictor.framework_profiles import framework
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.sync_policy import SYNCHRONISATIONS, synchronisation
from paceline.predictor.predict import predict
from paceline.predictor.uncertainty.step_corrections import NO_CORRECTIONS
from paceline.workload.workload import Workload

CLUSTER = catalogue.cluster("hkbu-v100-pcie").with_nodes(2)
WORKLOAD = Workload.of("resnet20", 32)


def seconds(policy, input_seconds, overlapped, plan=None, **options):
    profile = replace(framework("torch-ddp"), input_overlapped=overlapped)
    own = plan or Plan(dp=8)
    own = replace(own, framework=profile, synchronisation=synchronisation(policy))
    corrections = NO_CORRECTIONS
    found = predict(
        WORKLOAD, CLUSTER, own, input_seconds=input_seconds, corrections=corrections, **options
    )
    return found.step_seconds


@pytest.mark.parametrize("policy", sorted(SYNCHRONISATIONS.keys() - {"split"}))
def test_input_between_steps_adds_its_time(policy):
    base = seconds(policy, 0.0, False)
    for waited in (1e-3, 0.1):
        assert seconds(policy, waited, False) == pytest.approx(base + waited)


def test_input_between_steps_hides_gathers_of_weights():
    """``split`` gathers weights before the next forward, so messages run during the input."""
    base, waited = seconds("split", 0.0, False), 0.1
    whole = seconds("one_message", 0.0, False)
    assert base < whole
    assert base + waited - (whole - base) < seconds("split", waited, False) < base + waited


@pytest.mark.parametrize("policy", sorted(SYNCHRONISATIONS))
def test_prefetched_input_shows_only_beyond_the_step(policy):
    base = seconds(policy, 0.0, True)
    assert seconds(policy, 0.5 * base, True) == pytest.approx(base)
    assert seconds(policy, base + 1.0, True) >= base + 1.0


@settings(max_examples=10, deadline=None)
@given(st.sampled_from(sorted(SYNCHRONISATIONS)), st.sampled_from([1, 2, 4]))
@example("priority", 1)
@example("priority", 4)
def test_one_device_exchanges_nothing(policy, micro_batches):
    """A lone device has no gradients to wait for, whatever the policy."""
    alone = CLUSTER.shaped(1, 1)
    own = Plan(
        framework=replace(framework("torch-ddp"), input_overlapped=False),
        synchronisation=synchronisation(policy),
        micro_batches=micro_batches,
    )
    plain = replace(own, synchronisation=synchronisation("none"))
    assert predict(WORKLOAD, alone, own).step_seconds == pytest.approx(
        predict(WORKLOAD, alone, plain).step_seconds
    )
