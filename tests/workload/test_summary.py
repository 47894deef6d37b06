"""Layers grouped into blocks: complete, with repeated blocks as one group."""

import pytest

from paceline.catalog.model_tables import grouped_layers, single_layers
from paceline.workload import zoo


@pytest.mark.parametrize("name", ["resnet50", "densenet121", "gpt3_175b", "inception_v3", "vgg16"])
def test_groups_are_few_and_hold_every_layer_in_order(name):
    layers = zoo.build(name).cost(1).layers
    groups = grouped_layers(layers, most=48)
    assert len(groups) <= 48
    assert [layer for group in groups for layer in group.layers] == list(layers)


def test_blocks_that_repeat_are_one_group():
    groups = grouped_layers(zoo.build("gpt2").cost(1).layers)
    assert [group.name for group in groups] == [
        "embedding",
        "positions",
        "blocks.0-11",
        "norm",
        "head",
        "loss",
    ]
    blocks = groups[2]
    assert blocks.kind == "12 x 13 layers"
    assert blocks.total(lambda layer: layer.parameters) == 12 * (12 * 768**2 + 13 * 768)


def test_the_first_block_of_a_stage_differs_from_the_others():
    names = [group.name for group in grouped_layers(zoo.build("resnet50").cost(1).layers)]
    assert names[4:8] == ["layer1.0", "layer1.1-2", "layer2.0", "layer2.1-3"]


def test_single_layers_are_as_they_are():
    layers = zoo.build("resnet20").cost(1).layers
    groups = single_layers(layers)
    assert [group.name for group in groups] == [layer.name for layer in layers]
    assert groups[0].kind == "conv"
    assert groups[0].output is layers[0]
