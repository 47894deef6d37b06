"""Weights and batches as NumPy arrays equal those of the PyTorch worker."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import numpy_data  # noqa: E402
import torch_data  # noqa: E402
import torch_model  # noqa: E402

from paceline.testing.small_networks import SMALL_NETWORKS  # noqa: E402
from paceline.workload import zoo  # noqa: E402
from paceline.workload.shapes import with_shapes  # noqa: E402

pytestmark = pytest.mark.torch

GRAPHS = {**SMALL_NETWORKS, "resnet20": lambda: zoo.build("resnet20")}


def a_job(graph, **changes):
    fields = {"batch_per_rank": 3, "distinct_batches": 2, "seed": 7, "data": {"kind": "synthetic"}}
    return {"graph": graph, "framework": "jax", **fields, **changes}


def shaped(name, sequence=None):
    return with_shapes(GRAPHS[name]().to_json(), sequence)


def torch_weights(graph, seed):
    network = torch_model.build(graph)
    torch_data.initialise(network, graph, seed)
    found = {}
    for node in graph["nodes"]:
        for short, parameter in network.node_parameters(node["name"]):
            if not any(parameter is other for other in found.values()):
                found[f"{node['name']}.{short}"] = parameter
    return found


@pytest.mark.parametrize("name", GRAPHS)
def test_weights_are_the_pytorch_workers_bit_for_bit(name):
    graph = shaped(name)
    ours, theirs = numpy_data.initial_weights(graph, seed=7), torch_weights(graph, seed=7)
    assert list(ours) == list(theirs)
    for full, value in ours.items():
        assert value.dtype == np.float32
        assert np.array_equal(value, theirs[full].detach().numpy())


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize(("rank", "world"), [(0, 1), (1, 2)])
def test_batches_are_the_pytorch_workers_bit_for_bit(name, rank, world):
    job = a_job(shaped(name))
    names = list(job["graph"]["inputs"])
    ours = numpy_data.batches(job, rank, world)
    theirs = torch_data.batches(job, rank, world, names, [])
    assert len(ours) == len(theirs) == 2
    for made, (values, _) in zip(ours, theirs, strict=True):
        assert list(made) == names
        for name, value in zip(names, values, strict=True):
            assert np.array_equal(made[name], value.numpy())


def test_a_job_may_have_shorter_sequences_than_its_graph():
    job = a_job(shaped("small_gpt", sequence=4))
    assert {value.shape for value in numpy_data.batches(job, 0, 1)[0].values()} == {(3, 4)}


def test_a_layout_turns_weights_and_leaves_their_numbers():
    graph = shaped("small_images")
    plain = numpy_data.initial_weights(graph, 7)
    last = numpy_data.initial_weights(graph, 7, numpy_data.CHANNELS_LAST)
    assert np.array_equal(last["grouped.weight"], plain["grouped.weight"].transpose(2, 3, 1, 0))
    assert np.array_equal(last["head.weight"], plain["head.weight"].T)
    assert np.array_equal(last["grouped.bias"], plain["grouped.bias"])


def test_images_and_nothing_else_get_their_channels_last():
    image, tokens = np.zeros((2, 3, 4, 5)), np.zeros((2, 3, 4))
    assert numpy_data.channels_last(image).shape == (2, 4, 5, 3)
    assert numpy_data.channels_last(tokens) is tokens


def test_statistics_of_batch_norms_start_at_zero_and_one():
    found = numpy_data.initial_statistics(shaped("resnet20"))
    assert len(found) == 2 * 19
    assert found["bn1.running_mean"].tolist() == [0.0] * 16
    assert found["bn1.running_var"].tolist() == [1.0] * 16


def test_real_data_are_the_numbers_that_pytorch_trains_on():
    job = a_job(with_shapes(zoo.build("digits_cnn").to_json(), None), data={"kind": "digits"})
    for ours, ((samples,), (labels,)) in zip(
        numpy_data.batches(job, 1, 2),
        torch_data.batches(job, 1, 2, ["image"], ["label"]),
        strict=True,
    ):
        assert np.array_equal(ours["image"], samples.numpy())
        assert ours["label"].tolist() == labels.tolist()


def test_scores_are_judged_as_pytorch_does():
    scores = np.array([[0.1, 2.0, -1.0], [3.0, 3.5, 0.0]], np.float32)
    labels = np.array([1, 0])
    loss = torch.nn.functional.cross_entropy(
        torch.tensor(scores), torch.tensor(labels), reduction="sum"
    )
    assert numpy_data.loss_and_correct(scores, labels) == (pytest.approx(float(loss), rel=1e-6), 1)
    assert numpy_data.loss_and_correct(scores[:0], labels[:0]) == (0.0, 0)
