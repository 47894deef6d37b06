"""Corrections and intervals from synthetic effects with known results."""

import dataclasses
import math
import tomllib

import numpy as np
import pytest

from fitting.corrections_file import corrections_toml
from paceline.constants import number
from paceline.hardware import Cluster, Device, Link, catalogue
from paceline.predictor.evidence import Colocated, Evidence
from paceline.predictor.plan.plan import Plan
from paceline.predictor.predict import prepare
from paceline.predictor.uncertainty.applied_corrections import colocated_processes
from paceline.predictor.uncertainty.correction_model import (
    CorrectionModel,
    ErrorRule,
    FittedCorrections,
    corrections_for,
    prior_model,
    step_corrections,
)
from paceline.predictor.uncertainty.correction_table import read_corrections
from paceline.predictor.uncertainty.covariates import (
    Covariates,
    Program,
    Tuning,
    base_of,
    covariates_of,
    generation_of,
    kind_of,
    vendor_of,
    width_of,
)
from paceline.predictor.uncertainty.intervals import (
    ThroughputInterval,
    combination_error,
    launch_error,
    scaling_variance,
)
from paceline.predictor.uncertainty.mixed_effects import (
    Factor,
    Hierarchy,
    Quantity,
    Uncertain,
    logistic,
    prior_hierarchy,
)
from paceline.predictor.uncertainty.quantities import QUANTITIES, SMALL_MOVE
from paceline.predictor.uncertainty.step_corrections import StepCorrections, share_of
from paceline.workload.workload import Workload

# Mixed effects: 0.5 + effects of the levels, variances add.

SPEED = Quantity(
    "speed",
    0.5,
    0.3,
    (
        Factor("device", 0.1),
        Factor("framework+kind", 0.2, expected={"slow": 0.7}),
        Factor("compiler", 0.4, optional=True),
    ),
)
FITTED = Hierarchy(
    SPEED,
    Uncertain(0.5, 0.01),
    {"device": 0.1, "framework+kind": 0.2, "compiler": 0.4},
    {
        "device": {"a100": Uncertain(0.25, 0.002)},
        "framework+kind": {"torch/image": Uncertain(-0.125, 0.003)},
        "compiler": {"xla": Uncertain(-1.0, 0.004)},
    },
)


@pytest.mark.parametrize(
    ("covariates", "value", "variance"),
    [
        (Covariates(device="a100", framework="torch", kind="image"), 0.625, 0.015),
        (Covariates(device="h100", framework="torch", kind="image"), 0.375, 0.01 + 0.01 + 0.003),
        (Covariates(device="a100", framework="torch", kind="text"), 0.75, 0.01 + 0.002 + 0.04),
        (Covariates(device="a100", framework="slow", kind="text"), 1.45, 0.01 + 0.002 + 0.04),
        (Covariates(), 0.5, 0.01 + 0.01 + 0.04),
        (
            Covariates(device="a100", framework="torch", kind="image", compiler="xla"),
            -0.375,
            0.019,
        ),
        (
            Covariates(device="a100", framework="torch", kind="image", compiler="tvm"),
            0.625,
            0.015 + 0.16,
        ),
    ],
)
def test_effects_of_known_and_unknown_levels(covariates, value, variance):
    found = FITTED.estimate(covariates)
    assert found.value == pytest.approx(value)
    assert found.variance == pytest.approx(variance)


def test_a_quantity_before_any_fit():
    prior = prior_hierarchy(SPEED)
    assert prior.constant == (0.5, pytest.approx(0.09))
    found = prior.estimate(Covariates(device="a100"))
    assert found.variance == pytest.approx(0.09 + 0.01 + 0.04)
    assert set(prior_model().hierarchies) == {each.name for each in QUANTITIES}


def test_levels_of_joined_factors():
    own = Covariates(device="a100", kind="image", width="half")
    assert own.level("device") == "a100"
    assert own.level("kind+width") == "image/half"
    assert own.level("framework+kind") == ""
    assert own.level("kind+framework") == "image/"


def test_logistic():
    assert logistic(0.0) == 0.5
    assert logistic(math.log(3.0)) == pytest.approx(0.75)
    assert logistic(-math.log(3.0)) == pytest.approx(0.25)


# From quantities to a step.

VALUES = {
    "computing": math.log(1.5),
    "unhidden": math.log(3.0),
    "bandwidth": math.log(0.5),
    "variation": math.log(0.02),
}


def test_quantities_as_corrections():
    own = step_corrections(VALUES, ("note",))
    assert own.compute_factor == pytest.approx(1.5)
    assert own.unhidden_share == pytest.approx(0.75)
    assert own.bandwidth_factor == pytest.approx(0.5)
    assert own.variation == pytest.approx(0.02)
    assert own.overhead_seconds == pytest.approx(1e-3), "data/constants/overheads.toml"
    assert own.notes == ("note",)
    # Work of 1 s takes 4 s during messages, so 3 of 4 hidden seconds lengthen the step.
    assert own.interference == pytest.approx(3.0)
    assert share_of(3.0) == pytest.approx(0.75)


def a_fit(**changes):
    estimates = {name: Uncertain(value, 0.01 * i) for i, (name, value) in enumerate(VALUES.items())}
    rules = {"cold": ErrorRule(0.3), "cold-image": ErrorRule(0.2), "known_work": ErrorRule(0.1)}
    return FittedCorrections(estimates, rules, **changes)


def test_rules_of_residual_errors():
    assert a_fit(kind="image").rule("cold").noise == 0.2
    assert a_fit(kind="text").rule("cold").noise == 0.3
    assert a_fit(kind="image").rule("known_work").noise == 0.1
    assert FittedCorrections({}, {}).rule("cold") == ErrorRule()


def test_moved_and_variance():
    fit = a_fit(bandwidth_spread=0.3)
    moved = fit.moved("computing", math.log(2.0))
    assert moved.compute_factor == pytest.approx(3.0)
    assert dataclasses.replace(moved, compute_factor=1.0) == dataclasses.replace(
        fit.corrections, compute_factor=1.0
    )
    assert fit.variance("bandwidth") == pytest.approx(0.02 + 0.09)
    assert fit.variance("variation") == pytest.approx(0.03)
    assert fit.variance("computing") == 0.0


def test_corrections_for_a_job():
    model = CorrectionModel({"speed": FITTED}, {"cold": ErrorRule(0.3)})
    fit = corrections_for(model, Covariates(device="a100", kind="image"), 0.2)
    assert fit.estimates["speed"].value == pytest.approx(0.75)
    assert (fit.kind, fit.bandwidth_spread, fit.rule("cold").noise) == ("image", 0.2, 0.3)


def test_corrections_are_written_and_read():
    hierarchies = {each.name: prior_hierarchy(each) for each in QUANTITIES}
    first = QUANTITIES[0].factors[0].name
    hierarchies["computing"] = dataclasses.replace(
        hierarchies["computing"], levels={first: {"torch/image": Uncertain(0.125, 0.0625)}}
    )
    model = CorrectionModel(
        hierarchies,
        {"cold": ErrorRule(0.25, -1.5, 2.0)},
        "rows",
        frozenset({"a100"}),
        frozenset({"torch-ddp"}),
        512,
        Uncertain(0.125, 0.25),
    )
    again = read_corrections(tomllib.loads(corrections_toml(model)), "rows")
    assert again.fitted_on == "rows"
    assert again.rules == model.rules
    assert (again.devices, again.frameworks) == (model.devices, model.frameworks)
    assert again.most_devices == 512
    assert again.memory == pytest.approx(model.memory)
    found = again.hierarchies["computing"].levels[first]["torch/image"]
    assert found == Uncertain(0.125, 0.0625)
    for name, each in model.hierarchies.items():
        assert again.hierarchies[name].constant == pytest.approx(each.constant, rel=1e-4)
        assert again.hierarchies[name].deviations == pytest.approx(each.deviations)


def test_variation_across_nodes():
    own = StepCorrections(variation=0.01, variation_across_nodes=0.05)
    assert [own.variation_on(nodes) for nodes in (1, 2)] == [0.01, 0.05]
    assert StepCorrections(variation=0.01).variation_on(2) == 0.01
    assert StepCorrections().variation_on(2) is None
    assert StepCorrections().interference is None


# Intervals.


def test_symmetric_interval():
    """1.645 standard errors on each side hold 90 % of a normal distribution."""
    own = ThroughputInterval.symmetric(0.1)
    assert (own.low, own.high) == pytest.approx((math.exp(-0.1645), math.exp(0.1645)))
    assert own.relative_error == 0.1


def test_interval_of_a_rule():
    """noise 0.3 and variance 0.16 make a deviation of 0.5."""
    own = ThroughputInterval.ruled(ErrorRule(0.3, -1.0, 2.0), 0.16)
    assert (own.low, own.high) == pytest.approx((math.exp(-0.5), math.exp(1.0)))
    assert own.relative_error == pytest.approx(0.5)


def test_error_of_one_more_launch():
    """Prediction interval: s sqrt(1 + 1/n); one launch has only the prior."""
    least = number("spread.launches.smallest_variation")
    assert launch_error(0.1, 4) == pytest.approx(0.1 * math.sqrt(1.25))
    assert launch_error(0.1, 1) == pytest.approx(least * math.sqrt(2.0))
    assert launch_error(0.1, 2) == pytest.approx(0.1 * math.sqrt(1.5))
    assert launch_error(least / 2, 4) == pytest.approx(least * math.sqrt(1.25))


def test_error_of_combination():
    assert combination_error(here=True) == number("spread.model_error.here")
    assert combination_error(here=False) == number("spread.model_error.elsewhere")
    assert combination_error(here=True) < combination_error(here=False)


def test_delta_method_on_a_step_with_known_slopes():
    """Step = 2 s / bandwidth^0.5, independent of the unhidden share: slopes by hand."""
    fit = a_fit()

    def seconds(own):
        return 2.0 * own.bandwidth_factor**-0.5

    found = scaling_variance(fit, fit.corrections, seconds, lambda own: 1.0 + 10.0 * own.variation)
    slower = (1.0 + 0.2 * math.exp(SMALL_MOVE)) / 1.2 - 1.0
    variation = math.log1p(0.9 * slower) / SMALL_MOVE
    expected = 0.02 * 0.5**2 + 0.03 * variation**2
    assert float(found) == pytest.approx(expected)


def test_delta_method_of_many_steps():
    fit = a_fit()
    factors = np.array([1.0, 2.0])
    found = scaling_variance(
        fit, fit.corrections, lambda own: factors * own.bandwidth_factor**-1.0, lambda own: 1.0
    )
    assert found.shape == (2,)
    assert found == pytest.approx([0.02, 0.02], rel=0.01)


# Covariates.


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("torch-ddp", "torch"),
        ("horovod", "torch"),
        ("deepspeed", "torch"),
        ("horovod-mxnet", "mxnet"),
        ("tf-distribute", "tensorflow"),
        ("keras", "tensorflow"),
        ("nemo", "megatron"),
        ("megatron-lm", "megatron"),
        ("jax", "jax"),
        ("paddle", "paddle"),
        ("oneflow", "oneflow"),
    ],
)
def test_base_library_of_a_framework(name, base):
    assert base_of(name) == base


@pytest.mark.parametrize(
    ("year", "generation"),
    [
        (None, "pascal"),
        (2016, "pascal"),
        (2017, "volta"),
        (2019, "volta"),
        (2020, "ampere"),
        (2021, "ampere"),
        (2022, "hopper"),
        (2023, "hopper"),
        (2024, "blackwell"),
        (2026, "blackwell"),
    ],
)
def test_generations_begin_with_their_year(year, generation):
    device = Device("x", "NVIDIA", "gpu", {}, year=year)
    assert generation_of(device) == generation
    assert generation_of(dataclasses.replace(device, vendor="")) == generation
    assert generation_of(dataclasses.replace(device, vendor="AMD")) == "amd"
    assert generation_of(dataclasses.replace(device, generation="turing")) == "turing"
    assert vendor_of(device) == "nvidia"


@pytest.mark.parametrize(
    ("model", "sequence", "kind"),
    [
        ("resnet50", None, "image"),
        ("gpt2", 128, "decoder"),
        ("bert_large", 128, "text"),
        ("gnmt_v2", 30, "text"),
    ],
)
def test_kinds_of_work(model, sequence, kind):
    assert kind_of(Workload.of(model, 1, sequence)) == kind


@pytest.mark.parametrize(("number_format", "width"), [("fp32", "full"), ("amp_fp16", "half")])
def test_widths(number_format, width):
    assert width_of(Workload.of("resnet50", 1, None, number_format)) == width


def test_covariates_of_a_job():
    device = Device("a100", "nvidia", "gpu", {}, year=2020)
    nvlink = Link("nvlink3", "intra", 3e11, technology="nvlink")
    network = Link("hdr", "inter", 2.5e10, technology="infiniband", transport="rdma")
    one = Cluster("c", device, 8, 1, nvlink, network)
    workload = Workload.of("gpt2", 4, 256, "bf16")
    plain = covariates_of(workload, one, "torch-ddp")
    assert (plain.reach, plain.link) == ("nvlink", "nvlink3")
    assert (plain.tuning, plain.compiler) == ("", "")
    assert (plain.base, plain.kind, plain.width, plain.model) == (
        "torch",
        "decoder",
        "half",
        workload.graph.name,
    )
    program = Program(Tuning.TUNED, compiler="xla")
    two = covariates_of(workload, one.with_nodes(2), "torch-ddp", program)
    assert (two.reach, two.link) == ("rdma", "hdr")
    assert (two.tuning, two.compiler) == ("tuned", "xla")


@pytest.mark.parametrize(("workers", "nodes", "expected"), [(2, 1, 1.1), (8, 2, 1.3), (1, 1, None)])
def test_contention_is_that_of_the_processes_of_one_node(workers, nodes, expected):
    """Nodes of four devices: a node that is not full has fewer processes."""
    evidence = Evidence(colocation={2: Colocated(1.1), 4: Colocated(1.3)})
    cluster = catalogue.cluster("hkbu-v100-pcie").with_nodes(nodes)
    cluster = cluster if nodes > 1 else cluster.shaped(1, workers)
    job = prepare(Workload.of("resnet20", 8), cluster, Plan(dp=workers), evidence=evidence)
    found = colocated_processes(job)
    assert (found.slowdown if found else None) == expected
