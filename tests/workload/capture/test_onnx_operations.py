"""Products of single ONNX operations, and their gradients, against plain arithmetic."""

import pytest

from paceline.errors import InputError
from paceline.workload.capture.onnx_operations import is_understood, kind_of, products_of

CASES = {
    "grouped convolution": (
        ("Conv", [(2, 8, 10, 10), (16, 2, 3, 3)], [(2, 16, 8, 8)], {"group": 4}),
        2 * 2 * 16 * 2 * 9 * 64,
    ),
    "transposed convolution": (
        ("ConvTranspose", [(2, 8, 5, 5), (8, 4, 3, 3)], [(2, 4, 11, 11)], {}),
        2 * 2 * 25 * 8 * 4 * 9,
    ),
    "transposed factors": (
        ("Gemm", [(7, 3), (5, 7)], [(3, 5)], {"transA": 1, "transB": 1}),
        2 * 3 * 5 * 7,
    ),
    "product with a matrix": (("MatMul", [(2, 6, 4), (4, 9)], [(2, 6, 9)], {}), 2 * 12 * 4 * 9),
    "product of batches": (
        ("MatMul", [(2, 3, 6, 4), (2, 3, 4, 9)], [(2, 3, 6, 9)], {}),
        2 * 6 * 6 * 4 * 9,
    ),
    "product with a vector": (("MatMul", [(2, 6, 4), (4,)], [(2, 6)], {}), 2 * 12 * 4),
    "attention of heads": (
        ("Attention", [(2, 8, 5, 16), (2, 2, 7, 16), (2, 2, 7, 16)], [(2, 8, 5, 16)], {}),
        2 * 2 * (2 * 8) * 5 * 7 * 16,
    ),
    "attention of tokens": (
        (
            "Attention",
            [(2, 5, 128), (2, 7, 32), (2, 7, 32)],
            [(2, 5, 128)],
            {"q_num_heads": 8, "kv_num_heads": 2},
        ),
        2 * 2 * (2 * 8) * 5 * 7 * 16,
    ),
    "lstm": (
        ("LSTM", [(9, 2, 5), (1, 24, 5), (1, 24, 6)], [(9, 1, 2, 6)], {}),
        2 * 9 * 2 * 24 * (5 + 6),
    ),
    "gru in two directions": (
        ("GRU", [(9, 2, 5), (2, 18, 5), (2, 18, 6)], [(9, 2, 2, 6)], {}),
        2 * 2 * 9 * 2 * 18 * (5 + 6),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_products_and_their_gradients(name):
    arguments, flops = CASES[name]
    found = products_of(*arguments)
    assert sum(product.flops for product in found.products) == flops
    for has_weight in (False, True):
        of_inputs, of_weights = found.gradients(has_weight)
        assert sum(product.flops for product in of_inputs + of_weights) == 2 * flops
        assert bool(of_weights) == has_weight


def test_the_gradient_of_a_weight_has_its_shape():
    convolution = products_of("Conv", [(2, 3, 8, 8), (6, 3, 3, 3)], [(2, 6, 6, 6)], {})
    (of_weight,) = convolution.gradients(True)[1]
    assert (of_weight.m, of_weight.n) == (6, 27)
    linear = products_of("MatMul", [(10, 4), (4, 7)], [(10, 7)], {})
    (of_weight,) = linear.gradients(True)[1]
    assert (of_weight.m, of_weight.n) == (4, 7)


def test_channels_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match="the input has 5 channels, the filters have 3"):
        products_of("Conv", [(2, 5, 8, 8), (6, 3, 3, 3)], [(2, 6, 6, 6)], {})


def test_known_operations_and_their_cost_kinds():
    assert products_of("Relu", [(2, 3)], [(2, 3)], {}) is None
    assert is_understood("Relu")
    assert not is_understood("DeformConv")
    assert kind_of("MatMul", has_weight=True) == "linear"
    assert kind_of("MatMul", has_weight=False) == "attention"
    assert kind_of("DeformConv", has_weight=True) == "recorded"
