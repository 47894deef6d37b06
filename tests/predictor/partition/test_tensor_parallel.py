import pytest

from paceline.errors import InputError
from paceline.predictor.partition.tensor_parallel import Collective, Role, check_divisible, divide
from paceline.workload import zoo


def divisions(name, sequence_parallel=False):
    graph = zoo.build(name)
    return {
        node.name: division
        for node, division in zip(graph.nodes, divide(graph, sequence_parallel), strict=True)
    }


def operations(*lists):
    return [transfer.operation for transfers in lists for transfer in transfers]


def test_a_transformer_block_is_two_pairs_of_linear_maps():
    parts = divisions("gpt2")
    roles = {name.removeprefix("blocks.3."): part.role for name, part in parts.items()}
    assert roles["attention.qkv"] is roles["mlp.up"] is Role.OUTPUTS
    assert roles["attention.out"] is roles["mlp.down"] is Role.INPUTS
    assert roles["attention.scores"] is roles["mlp.activation"] is Role.FEATURES
    assert roles["norm1"] is roles["add2"] is Role.WHOLE


def test_a_block_sums_twice_forward_and_twice_backward():
    block = [part for name, part in divisions("gpt2").items() if name.startswith("blocks.3.")]
    assert operations(*(part.forward for part in block)) == [Collective.ALL_REDUCE] * 2
    assert operations(*(part.backward for part in block)) == [Collective.ALL_REDUCE] * 2


def test_sequence_parallelism_splits_each_sum_in_two():
    parts = divisions("gpt2", sequence_parallel=True)
    block = [part for name, part in parts.items() if name.startswith("blocks.3.")]
    forward = operations(*(part.forward for part in block))
    assert sorted(forward) == [Collective.ALL_GATHER] * 2 + [Collective.REDUCE_SCATTER] * 2


def test_filters_are_gathered_before_the_next_layer_that_mixes_them():
    parts = divisions("vgg16")
    assert operations(parts["conv1_1"].forward) == []
    assert operations(parts["conv1_1"].backward) == []
    assert operations(parts["conv2_1"].forward) == [Collective.GATHER_FEATURES]
    assert operations(parts["conv2_1"].backward) == [Collective.SCATTER_FEATURES]
    assert parts["relu1_1"].role is parts["pool1"].role is Role.FEATURES


def test_a_tensor_that_two_layers_read_is_gathered_once():
    parts = divisions("resnet50")
    graph = zoo.build("resnet50")
    gathered = [t.tensor for part in parts.values() for t in part.forward]
    assert len(gathered) == len(set(gathered))
    mixing = [node for node in graph.nodes if node.op.kind in ("conv", "linear")]
    assert len(mixing) > len(gathered) + 1, "a shortcut and its main path read one tensor"


def test_heads_must_divide():
    with pytest.raises(InputError, match=r"12 heads of 'blocks\.0\.attention\.scores'"):
        check_divisible(zoo.build("gpt2"), 8)
    with pytest.raises(InputError, match="64 filters of 'conv1"):
        check_divisible(zoo.build("resnet50"), 3)
    check_divisible(zoo.build("gpt2"), 4)
    check_divisible(zoo.build("resnet50"), 8)
