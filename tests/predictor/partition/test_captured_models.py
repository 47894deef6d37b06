"""Captured models: tensor parallelism is refused, and token inputs are recognised."""

from types import SimpleNamespace

import pytest

from paceline.errors import InputError
from paceline.predictor.partition.tensor_parallel import check_divisible, common_size
from paceline.predictor.training_run import samples_of
from paceline.workload.graph import Graph, InputSpec, Node
from paceline.workload.ops import Recorded
from paceline.workload.ops.work import Work


def captured(inputs: dict[str, InputSpec]) -> Graph:
    layer = Node("layer", Recorded("Linear", (1,), 1000, Work()), (next(iter(inputs)),))
    return Graph("mine", inputs, (layer,), "layer")


TOKENS = {"tokens": InputSpec((2048,), "integer", 32000)}


def test_tensor_parallelism_is_refused():
    graph = captured(TOKENS)
    check_divisible(graph, 1)
    with pytest.raises(InputError, match="tp 2 cannot divide the captured operations of mine"):
        check_divisible(graph, 2)
    assert common_size(graph) == 1


@pytest.mark.parametrize(
    ("inputs", "is_text"),
    [
        (TOKENS, True),
        (TOKENS | {"label": InputSpec((), "integer", 2)}, True),
        ({"dense": InputSpec((13,)), "sparse": InputSpec((26,), "integer", 1000)}, False),
        ({"image": InputSpec((3, 32, 32)), "label": InputSpec((), "integer", 10)}, False),
    ],
)
def test_tokens_are_integers_without_other_inputs(inputs, is_text):
    workload = SimpleNamespace(graph=captured(inputs), sequence=None)
    prediction = SimpleNamespace(workload=workload)
    if is_text:
        assert samples_of(prediction, 2048 * 400, None, None) == 400
    else:
        with pytest.raises(InputError, match="does not train on tokens"):
            samples_of(prediction, 1e6, None, None)
