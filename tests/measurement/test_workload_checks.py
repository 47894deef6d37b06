"""The zoo against PyTorch: parameters, FLOP, kept activations; built modules against captured."""

import warnings

import pytest

pytest.importorskip("torch")

from workload_checks import check
from workload_page import page

from paceline.workload import zoo
from paceline.workload.zoo.zoo_registry import families

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

QUICK = (
    *("fcn5", "alexnet", "resnet20", "mobilenet_v1", "lstm_ptb", "ncf"),
    *("dlrm", "tft_electricity", "mobilefacenet_arcface"),
)
"""Networks of every kind of layer that torch counts differently, small enough for every run."""

KEPT_TO_FIVE_PERCENT = ("resnet50", "vgg16", "gpt2")


def assert_agrees(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = check(name)
    assert result.graph.parameters == result.torch.parameters == result.captured.parameters
    assert result.forward_ratio == pytest.approx(1, abs=0.01)
    assert result.training_ratio == pytest.approx(1, abs=0.01)
    assert result.captured_ratio == pytest.approx(1, abs=0.01)
    assert result.captured.forward_flops == pytest.approx(result.graph.forward_flops, rel=0.01)
    return result


@pytest.mark.parametrize("name", QUICK)
def test_a_network_agrees_with_torch(name):
    assert_agrees(name)


OF_A_FORM = ("nemotron4_15b", "gemma_7b", "roberta_large", "vit_l_16", "gpt_neox_20b")
SIBLINGS = (
    *("kimi_k2", "qwen3_235b_a22b", "gpt_oss_120b", "llama4_maverick"),
    *(name for name in families() if name not in OF_A_FORM),
)
"""Larger ones of a form that is checked, some minutes each; `script/workload-checks` has them."""


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in zoo.names() if n not in (*QUICK, *SIBLINGS)])
def test_every_other_network_agrees_with_torch(name):
    assert_agrees(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", KEPT_TO_FIVE_PERCENT)
def test_activations_agree_with_the_tensors_that_autograd_saves(name):
    assert check(name).activation_ratio == pytest.approx(1, abs=0.05)


def test_page_has_a_row_per_network_and_notes_errors_of_torch():
    result = assert_agrees("mobilenet_v1")
    assert result.uncorrected_training_flops > 2 * result.torch.training_flops
    text = page([result], "9.9")
    assert "PyTorch 9.9" in text
    assert text.splitlines()[-1].startswith("| mobilenet_v1 | 4,231,976 |")
