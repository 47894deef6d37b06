"""What is known of a job by name, and what a name that nobody measured costs."""

import pytest

from paceline.hardware import catalogue
from paceline.hardware.usual_links import with_default_links
from paceline.predictor.plan.plan import Plan
from paceline.predictor.predict import predict
from paceline.predictor.uncertainty.covariates import generation_of
from paceline.workload.workload import Workload


@pytest.mark.parametrize(
    ("name", "generation"),
    [
        ("k80", "pascal"),
        ("v100", "volta"),
        ("a100", "ampere"),
        ("h100", "hopper"),
        ("l40s", "hopper"),
        ("h200_nvl", "hopper"),
        ("b200_sxm", "blackwell"),
        ("rtx5090", "blackwell"),
        ("mi300x", "amd"),
        ("ipu_bow", "graphcore"),
    ],
)
def test_a_generation_is_of_one_vendor(name, generation):
    assert generation_of(catalogue.device(name)) == generation


def test_devices_of_a_vendor_that_nobody_measured_have_wider_intervals():
    def width(name):
        one = with_default_links(catalogue.device(name), 1, 1)
        interval = predict(
            Workload.of("resnet50", 64, None, "amp_fp16", "sgd_momentum"), one, Plan()
        ).interval
        return interval.high / interval.low

    assert width("mi300x") > width("h100")
    assert width("b200_sxm") > width("h100")
