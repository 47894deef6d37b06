"""What moves if a constant changes."""

import pytest

from paceline.errors import UnknownNameError
from paceline.predictor.comm.library import library
from paceline.predictor.framework_profiles import framework
from paceline.predictor.sensitivity import STANDARD_CASES, movements


def moved(name, factor=1.1):
    return {m.case.model + "@" + m.case.cluster: m.relative_change for m in movements(name, factor)}


def test_more_of_the_matrix_rate_speeds_up_what_uses_matrix_units_and_nothing_else():
    changes = moved("kernels.matrix.ceiling")
    assert -0.1 < changes["gpt3_175b@dgx-a100"] < -0.03
    assert changes["gpt2@dgx-h100"] < 0
    assert changes["resnet50@dgx-1"] == changes["resnet44@xeon-edr"] == 0


def test_slower_hops_of_gloo_slow_down_processors_alone():
    changes = moved("libraries.gloo.hop.any.rdma", 10.0)
    assert changes["resnet44@xeon-edr"] > 0
    assert changes["resnet50@dgx-1"] == 0


def test_a_factor_of_one_moves_nothing():
    assert set(moved("libraries.nccl.efficiency.rdma", 1.0).values()) == {0.0}


def test_standard_cases_have_every_kind_of_device_and_library():
    libraries = set()
    for case in STANDARD_CASES:
        profile = framework(case.framework)
        processor = case.cluster == "xeon-edr"
        libraries.add(profile.processor_library if processor else profile.accelerator_library)
    assert {library(name).name for name in libraries} >= {"nccl", "gloo", "openmpi"}


def test_an_unknown_constant_is_refused():
    with pytest.raises(UnknownNameError, match=r"Did you mean kernels.matrix.tile"):
        movements("kernels.matrix.tiles")
