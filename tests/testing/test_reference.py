import numpy as np
import pytest

from paceline.errors import InputError
from paceline.measurement.job import Job
from paceline.testing.bench import narrowed_fcn5
from paceline.testing.reference import initial_weights, loss_and_gradients, reference_losses
from paceline.workload import zoo
from paceline.workload.shapes import with_shapes


def node(name, op, *inputs, **fields):
    return {"name": name, "op": op, "inputs": list(inputs), **fields}


def window(kernel, stride=1, padding=0):
    return {"kernel": [kernel] * 2, "stride": [stride] * 2, "padding": [padding] * 2}


def conv(name, source, channels, groups, bias, *sizes):
    fields = {"out_channels": channels, "groups": groups, "bias": bias, "dilation": [1, 1]}
    return node(name, "conv", source, **fields, **window(*sizes))


SMALL = {
    "schema": "paceline/graph/1",
    "name": "small",
    "inputs": {
        "image": {"shape": [3, 8, 8], "dtype": "float"},
        "label": {"shape": [], "dtype": "integer", "limit": 3},
    },
    "nodes": [
        conv("conv", "image", 4, 1, True, 3, 1, 1),
        node("norm", "batch_norm", "conv"),
        node("tanh", "activation", "norm", function="tanh"),
        node("shortcut", "pad_shortcut", "tanh", out_channels=6, stride=2),
        conv("strided", "tanh", 6, 2, False, 3, 2, 1),
        node("sum", "add", "shortcut", "strided"),
        node("max", "max_pool", "sum", ceil=False, **window(3, 1, 1)),
        node("mean", "avg_pool", "sum", ceil=False, **window(3, 1, 1)),
        node("both", "concat", "max", "mean"),
        node("flat", "flatten", "both"),
        node("fc", "linear", "flat", out_features=3, bias=True),
        node("loss", "cross_entropy", "fc", "label"),
    ],
    "output": "loss",
}
"""Every layer that has a slope of its own, in one network."""

SHAPED = with_shapes(SMALL)


def a_batch():
    random = np.random.default_rng(1)
    return {"image": random.uniform(-1, 1, (4, 3, 8, 8)), "label": np.array([0, 1, 2, 1])}


@pytest.mark.parametrize(
    "weight", ["conv.weight", "conv.bias", "norm.weight", "norm.bias", "strided.weight", "fc.bias"]
)
def test_gradients_are_slopes_of_the_loss(weight):
    weights, batch = initial_weights(SHAPED, seed=1), a_batch()
    _, gradients = loss_and_gradients(SHAPED, weights, batch)
    place = tuple(size // 2 for size in weights[weight].shape)
    losses = []
    for change in (1e-5, -1e-5):
        moved = {**weights, weight: weights[weight].copy()}
        moved[weight][place] += change
        losses.append(loss_and_gradients(SHAPED, moved, batch)[0])
    slope = (losses[0] - losses[1]) / 2e-5
    assert gradients[weight][place] == pytest.approx(slope, rel=1e-4, abs=1e-8)


def a_job(model="resnet20", **changes):
    fields = {"graph": zoo.build(model).to_json(), "batch_per_rank": 2, "steps": 2}
    return Job(**{"model": model, "warmup_steps": 0, **fields, **changes})


def test_two_ranks_equal_one_batch():
    graph = narrowed_fcn5()
    one = reference_losses(a_job(graph=graph, batch_per_rank=4))
    assert reference_losses(a_job(graph=graph, world_size=2)) == one


def test_an_untrained_classifier_has_the_loss_of_guessing():
    assert reference_losses(a_job(steps=1))[0] == pytest.approx(np.log(10), rel=0.3)


def test_unsupported_networks_are_rejected():
    with pytest.raises(InputError, match=r"no operation .*moe"):
        reference_losses(a_job("mixtral_8x7b"))
    with pytest.raises(InputError, match="no operation dropout"):
        reference_losses(a_job("alexnet"))
    with pytest.raises(InputError, match="batch statistics"):
        reference_losses(a_job(world_size=2))
