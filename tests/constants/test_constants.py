"""Constants: every number has a unit and an origin, and can have another value for a while."""

import threading

import pytest

from paceline.constants import (
    ConstantStatus,
    constant,
    number,
    numbers_of,
    overridden,
    shipped_constants,
)
from paceline.constants.constant_registry import FILES, read_constants
from paceline.errors import InputError, UnknownNameError
from paceline.located_toml import parse_toml
from paceline.predictor.comm.library import library
from paceline.predictor.kernels.efficiency import load_efficiency
from paceline.predictor.uncertainty.step_corrections import cluster_corrections

SMALL = """\
[unit]
s = ["*.start", "wait"]
fraction = ["*.reached"]

[origin.judgement]
status = "prior"
source = "judgement"
numbers = ["*"]

[origin.bench]
status = "fitted"
source = "least squares"
fitted_on = "three runs of a bench"
numbers = ["ring.*"]

[ring]
start = "10us"
reached = 0.8
name = "a ring"
quick = true

[tree]
start = 2e-5
"""


def small(old="", new=""):
    text = 'wait = "1ms"\n' + SMALL
    return read_constants(parse_toml(text.replace(old, new, 1), "small.toml"), "small")


def test_each_number_has_its_unit_and_the_last_origin_that_fits_it():
    found = small()
    assert set(found) == {
        "small.wait",
        "small.ring.start",
        "small.ring.reached",
        "small.tree.start",
    }
    ring = found["small.ring.start"]
    assert (ring.value, ring.unit, ring.status) == (pytest.approx(1e-5), "s", ConstantStatus.FITTED)
    assert (ring.source, ring.fitted_on) == ("least squares", "three runs of a bench")
    assert found["small.tree.start"].status is ConstantStatus.PRIOR
    assert found["small.wait"].value == pytest.approx(1e-3)


@pytest.mark.parametrize(
    ("change", "message", "hint"),
    [
        (('"*.reached"', '"tree.start"'), "line 19: 'ring.reached' has no unit", "[unit]"),
        (('numbers = ["*"]', 'numbers = ["tree.*"]'), "line 1: 'wait' has no origin", "[origin"),
        (('["ring.*"]', '["rnig.*"]'), "line 15: pattern 'rnig.*' matches no number", "'ring."),
        (('"fitted"', '"guessed"'), "line 12: invalid status 'guessed'", "fact, prior, fitted"),
        (
            ('"prior"', '"fitted"'),
            "line 7: [origin.judgement] has status fitted without",
            "only there",
        ),
        (
            ('"fitted"', '"fact"'),
            "line 12: [origin.bench] has status fact with fitted_on",
            "only there",
        ),
        (('source = "judgement"', 'sauce = "x"'), "line 8: unknown key 'sauce'", "'source'"),
        (('"10us"', '"10 parsecs"'), "line 18: '10 parsecs' is not a duration", "200us"),
        (("= 0.8", '= "most"'), "line 19: reached is 'most', not a number", "fraction"),
        (("= 0.8", "= inf"), "line 19: reached must be finite", "finite"),
    ],
)
def test_a_mistake_in_a_file_is_named_with_its_line(change, message, hint):
    with pytest.raises(InputError) as caught:
        small(*change)
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_every_number_that_comes_with_the_package_says_where_it_is_from():
    found = shipped_constants()
    assert {name.split(".")[0] for name in found} == set(FILES)
    for one in found.values():
        assert one.unit and one.source, one.name
        assert bool(one.fitted_on) == (one.status is ConstantStatus.FITTED), one.name
    assert found["kernels.matrix.ceiling"].status is ConstantStatus.FITTED
    assert found["libraries.nccl.hop.simple.rdma"].value == pytest.approx(14e-6)
    assert found["libraries.nccl.hop.simple.rdma"].status is ConstantStatus.FACT
    assert found["libraries.nccl.hop.simple.tcp"].status is ConstantStatus.PRIOR


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(UnknownNameError, match=r"Did you mean kernels.matrix.ceiling"):
        constant("kernels.matrix.ceilng")
    with (
        pytest.raises(UnknownNameError, match=r"no constant named 'nothing'"),
        overridden({"nothing": 1.0}),
    ):
        pass


def test_another_value_holds_inside_and_reaches_what_is_built_from_it():
    usual = load_efficiency()
    with overridden({"kernels.matrix.ceiling": 0.5, "overheads.launch_seconds.processor": 1e-3}):
        assert number("kernels.matrix.ceiling") == 0.5
        assert load_efficiency().matrix.ceiling == 0.5
        assert load_efficiency().launch_seconds["processor"] == 1e-3
        assert load_efficiency().vector == usual.vector
        with overridden({"kernels.matrix.ceiling": 0.6}):
            assert load_efficiency().matrix.ceiling == 0.6
            assert load_efficiency().launch_seconds["processor"] == 1e-3
        assert load_efficiency().matrix.ceiling == 0.5
    assert load_efficiency() == usual


def test_libraries_that_are_like_another_follow_it():
    with overridden({"libraries.nccl.hop.simple.tcp": 1.0, "libraries.nccl.efficiency.tcp": 0.1}):
        for name in ("nccl", "nccl-ring", "hierarchical-nccl"):
            assert library(name).efficiency["tcp"] == 0.1
            assert any(variant.hop_seconds.get("tcp") == 1.0 for variant in library(name).variants)
    assert library("nccl").efficiency["tcp"] == 0.95


def test_clusters_that_were_measured_in_training_follow_too():
    with overridden({"overheads.cluster.hkbu-k80.interference": 0.0}):
        assert cluster_corrections("hkbu-k80").interference == 0.0
    assert cluster_corrections("hkbu-k80").interference == pytest.approx(0.142)


def test_an_error_inside_and_another_thread_see_the_usual_values():
    seen = []
    with pytest.raises(RuntimeError), overridden({"kernels.matrix.ceiling": 0.5}):
        thread = threading.Thread(target=lambda: seen.append(number("kernels.matrix.ceiling")))
        thread.start()
        thread.join()
        raise RuntimeError
    assert seen == [1.075]
    assert number("kernels.matrix.ceiling") == 1.075


def test_an_impossible_value_is_located_in_the_file():
    with overridden({"kernels.memory.add": -1.0}), pytest.raises(InputError) as caught:
        load_efficiency()
    lines = numbers_of("kernels").text.splitlines()
    line = next(place for place, text in enumerate(lines, 1) if text.startswith("add = "))
    assert f"kernels.toml, line {line}: add: out of range: -1.0" in caught.value.message
