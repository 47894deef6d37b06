"""Graphs built into PyTorch modules: shapes, parameters, names, sharing, losses, optimisers."""

import json

import pytest

torch = pytest.importorskip("torch")

import synthetic  # noqa: E402
import torch_data  # noqa: E402
import torch_layers  # noqa: E402
import torch_model  # noqa: E402

from paceline.workload import Graph, ops, zoo  # noqa: E402
from paceline.workload.zoo.llama import llama  # noqa: E402
from paceline.workload.zoo.network_builder import NetworkBuilder  # noqa: E402
from paceline.workload.zoo.sizes import LlamaSize  # noqa: E402

pytestmark = pytest.mark.torch


def built(graph: Graph):
    document = json.loads(json.dumps(graph.to_json()))
    return torch_model.build(document), torch_model.build_loss(document)


def job(graph: Graph, **fields):
    return {
        "graph": graph.to_json(),
        "batch_per_rank": 4,
        "distinct_batches": 2,
        "seed": 1,
        "data": {"kind": "synthetic"},
    } | fields


def one_of(op: ops.Op, *shapes: tuple[int, ...]) -> Graph:
    """A graph of a single operation on float inputs."""
    net = NetworkBuilder("one")
    names = [net.image(*shape, name=f"x{number}") for number, shape in enumerate(shapes)]
    return net.build(net.add_node("node", op, *names))


WINDOW = ((3, 2), (2, 1), (1, 0))
OPERATIONS = {
    "conv1d": (ops.Convolution(6, (3,), (2,), (1,), (1,), groups=2), [(4, 17)]),
    "conv2d": (ops.Convolution(8, (3, 5), (2, 1), (1, 2), (2, 1), bias=True), [(3, 20, 21)]),
    "conv3d": (ops.Convolution(5, (3, 3, 3), (1, 1, 1), (0,) * 3, (1,) * 3), [(2, 6, 7, 8)]),
    "transposed": (
        ops.Convolution(
            6, (3, 3), (2, 2), (1, 1), (1, 1), bias=True, transposed=True, output_padding=(1, 0)
        ),
        [(4, 5, 6)],
    ),
    "linear": (ops.Linear(7), [(5, 3)]),
    "batch_norm": (ops.BatchNorm(), [(6, 4, 4)]),
    "batch_norm_of_features": (ops.BatchNorm(), [(6,)]),
    "group_norm": (ops.GroupNorm(3), [(6, 4, 4)]),
    "layer_norm": (ops.LayerNorm(bias=False), [(5, 8)]),
    "rms_norm": (ops.RmsNorm(), [(5, 8)]),
    "local_response_norm": (ops.LocalResponseNorm(5), [(8, 4, 4)]),
    "max_pool": (ops.MaxPool(*WINDOW), [(3, 9, 9)]),
    "max_pool_ceil": (ops.MaxPool((3, 3), (2, 2), (0, 0), ceil=True), [(3, 12, 13)]),
    "avg_pool": (ops.AveragePool(*WINDOW), [(3, 9, 9)]),
    "global_avg_pool": (ops.GlobalAveragePool(), [(3, 9, 9)]),
    "add": (ops.Add(), [(3, 4), (3, 4), (3, 4)]),
    "multiply_by_channel": (ops.Multiply(), [(3, 4, 5), (3,)]),
    "flatten": (ops.Flatten(1), [(3, 4, 5)]),
    "reshape": (ops.Reshape((6, -1)), [(3, 4, 5)]),
    "transpose": (ops.Transpose((2, 0, 1)), [(3, 4, 5)]),
    "slice": (ops.Slice(-1, 1, 3), [(3, 4)]),
    "concat": (ops.Concatenate(1), [(3, 4), (3, 2)]),
    "pad_shortcut": (ops.PadShortcut(7, 2), [(4, 5, 6)]),
    "dropout": (ops.Dropout(0.3), [(3, 4)]),
    "position_embedding": (ops.PositionEmbedding(10), [(6, 4)]),
    "class_token": (ops.ClassToken(), [(6, 4)]),
    "rotary": (ops.Rotary(8), [(6, 16)]),
    "attention": (ops.Attention(4, 4, 8, causal=True), [(6, 32)] * 3),
    "grouped_attention": (ops.Attention(4, 2, 8), [(6, 32), (7, 16), (7, 16)]),
    "unfused_attention": (ops.Attention(4, 2, 8, fused=False), [(6, 32), (7, 16), (7, 16)]),
    "attention_in_a_window": (ops.Attention(4, 2, 8, True, window=3), [(6, 32), (6, 16), (6, 16)]),
    "attention_with_sinks": (
        ops.Attention(4, 2, 8, True, window=3, sinks=True),
        [(6, 32), (6, 16), (6, 16)],
    ),
    "attention_with_narrow_values": (
        ops.Attention(4, 4, 8, value_dim=5),
        [(6, 32)] * 2 + [(6, 20)],
    ),
    "attention_by_distance": (ops.Attention(4, 4, 8, relative_buckets=8), [(6, 32)] * 3),
    "expand": (ops.Expand(0, 4), [(1, 8)]),
    "causal_conv": (ops.CausalConvolution(4), [(6, 8)]),
    "selective_scan": (ops.SelectiveScan(), [(6, 8), (6, 8), (6, 3), (6, 3)]),
    "state_space_dual": (ops.StateSpaceDual(4, 2, 3, 4), [(6, 8), (6, 4), (6, 6), (6, 6)]),
    "moe_with_biases": (ops.MixtureOfExperts(4, 2, 16, bias=True), [(6, 8)]),
    "relative_attention": (ops.RelativeAttention(2, 6), [(5, 12), (9, 12), (9, 12)]),
    "additive_attention": (ops.AdditiveAttention(6), [(4, 6), (5, 6)]),
    "lstm": (ops.Lstm(5, 2, bidirectional=True), [(4, 3)]),
    "lstm_without_bias": (ops.Lstm(5, bias=False), [(4, 3)]),
    "moe": (ops.MixtureOfExperts(4, 2, 16), [(6, 8)]),
    "moe_without_gate": (ops.MixtureOfExperts(4, 1, 16, gated=False), [(6, 8)]),
    "lstm_from_a_state": (ops.Lstm(5), [(4, 3), (5,), (5,)]),
    "frozen_batch_norm": (ops.FrozenBatchNorm(), [(6, 4, 4)]),
    "add_per_channel": (ops.AddPerChannel(), [(3, 4, 5), (3,)]),
    "fused_sum": (ops.FusedSum(), [(3, 4), (3, 4), (3, 4)]),
    "prelu": (ops.Prelu(), [(3, 4, 5)]),
    "upsample": (ops.Upsample(2), [(3, 4, 5)]),
    "upsample_of_volumes": (ops.Upsample(3), [(2, 2, 3, 4)]),
    "roi_align": (ops.RoiAlign((7, 5)), [(6, 4), (3, 16, 20), (3, 8, 10)]),
    "matrix_product": (ops.MatrixProduct(), [(2, 3, 4), (2, 4, 5)]),
    "dot_interaction": (ops.DotInteraction(), [(5, 8)]),
    **{f"activation_{f}": (ops.Activation(f), [(3, 4)]) for f in torch_layers.ACTIVATIONS},
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_modules_have_the_shapes_and_parameters_of_their_operations(name):
    op, shapes = OPERATIONS[name]
    graph = one_of(op, *shapes)
    network, _ = built(graph)
    (layer,) = graph.cost(2).layers
    result = network(*[torch.randn(2, *shape) for shape in shapes])
    assert tuple(result.shape[1:]) == layer.output_shape
    assert {name: p.numel() for name, p in network.node_parameters("node")} == dict(layer.tensors)


def test_fused_and_written_out_attention_give_the_same_result():
    tokens = [torch.randn(2, 6, width) for width in (32, 16, 16)]
    results = []
    for fused in (True, False):
        graph = one_of(ops.Attention(4, 2, 8, True, fused), *[x.shape[1:] for x in tokens])
        results.append(built(graph)[0](*tokens))
    assert torch.allclose(*results, atol=1e-6)


def test_sliding_window_masks_earlier_keys():
    tokens = [torch.randn(1, 6, 8) for _ in range(3)]
    results = {}
    for fused in (True, False):
        graph = one_of(ops.Attention(1, 1, 8, True, fused, window=2), *[(6, 8)] * 3)
        results[fused] = built(graph)[0](*tokens)
    assert torch.allclose(results[True], results[False], atol=1e-6)
    last_two = [x[:, -2:] for x in tokens]
    alone = built(one_of(ops.Attention(1, 1, 8, True), *[(2, 8)] * 3))[0](*last_two)
    assert torch.allclose(results[True][:, -1], alone[:, -1], atol=1e-6)


def test_distances_share_rows_as_t5_has_them():
    from torch_sequence_layers import distance_buckets

    apart = torch.tensor([-40, -1, 0, 1, 7, 8, 40, 500])
    assert distance_buckets(apart, 32, causal=False).tolist() == [28, 17, 0, 1, 7, 8, 12, 15]
    assert distance_buckets(apart, 32, causal=True).tolist() == [0, 0, 0, 1, 7, 8, 23, 31]


def test_states_by_chunks_are_those_of_the_recurrence():
    torch.manual_seed(0)
    heads, groups, state, length = 4, 2, 3, 10
    op = ops.StateSpaceDual(heads, groups, state, chunk=4)
    shapes = [(length, 8), (length, heads), (length, groups * state), (length, groups * state)]
    network = built(one_of(op, *shapes))[0]
    values, steps, into, out = inputs = [torch.randn(2, *shape) for shape in shapes]
    (_, decay), (_, direct), _ = network.node_parameters("node")
    steps = torch.nn.functional.softplus(steps)
    values = values.unflatten(-1, (heads, -1))
    into, out = (x.unflatten(-1, (groups, -1)).repeat_interleave(2, 2) for x in (into, out))
    kept, expected = torch.zeros(2, heads, 2, state), []
    for token in range(length):
        left = torch.exp(-steps[:, token] * decay.exp())[..., None, None]
        added = values[:, token, :, :, None] * into[:, token, :, None]
        kept = left * kept + steps[:, token, :, None, None] * added
        read = (kept * out[:, token, :, None]).sum(-1)
        expected.append((read + direct[:, None] * values[:, token]).flatten(1))
    assert torch.allclose(network(*inputs), torch.stack(expected, 1), atol=1e-5)


def test_a_box_round_the_whole_image_sees_all_of_it():
    network, _ = built(one_of(ops.RoiAlign((2, 2), samples=2), (1, 4), (1, 4, 4)))
    image = torch.arange(16.0).reshape(1, 1, 4, 4)
    seen = network(torch.tensor([[[-1.0, -1.0, 1.0, 1.0]]]), image)
    expected = torch.nn.functional.avg_pool2d(image, 2)
    assert torch.allclose(seen[:, :, 0], expected)


def test_pairs_of_features_are_multiplied_once_each():
    network, _ = built(one_of(ops.DotInteraction(), (3, 2)))
    first, second, third = features = torch.randn(3, 2)
    expected = torch.stack([second @ first, third @ first, third @ second])
    assert torch.allclose(network(features[None])[0], expected)


def test_only_adapters_are_trained():
    graph = llama("small", LlamaSize(32, 2, 4, 2, 64, 50, 8, adapter_rank=4))
    network, loss = built(graph)
    torch_data.initialise(network, graph.to_json(), seed=1)
    before = {name: p.detach().clone() for name, p in network.named_parameters()}
    (inputs, targets), *_ = torch_data.batches(
        job(graph), 0, 1, network.input_names, loss.target_names
    )
    loss(network(*inputs), *targets).backward()
    optimiser = {"name": "sgd", "learning_rate": 0.1}
    torch_model.build_optimiser(network.parameters(), optimiser).step()
    changed = {n for n, p in network.named_parameters() if not torch.equal(before[n], p)}
    assert changed == {n for n in before if n.endswith(("_down.weight", "_up.weight"))}
    assert sum(before[n].numel() for n in changed) == graph.cost(1).trainable_parameters


def test_a_sparse_table_has_a_gradient_of_the_rows_that_were_looked_up():
    network, loss = built(graph := zoo.build("wide_deep_vocab1000_emb8_fc2x16"))
    (inputs, targets), *_ = torch_data.batches(
        job(graph), 0, 1, network.input_names, loss.target_names
    )
    loss(network(*inputs), *targets).backward()
    gradient = network.get_parameter("deep.table.weight").grad
    assert gradient.is_sparse
    described = {layer.name: layer.gradient_bytes for layer in graph.cost(4).layers}
    assert gradient._values().numel() * 4 == described["deep.table"]


def test_relative_attention_scores_by_distance():
    # Without content, the score of query i for key j is that of distance i - j alone.
    from torch_sequence_layers import shifted

    by_column = torch.arange(4.0).expand(1, 1, 4, 4)  # column j stands for distance 3 - j
    distances = 3 - shifted(by_column)[0, 0]
    for query in range(4):
        for key in range(query + 1):
            assert distances[query, key] == query - key


def test_rotary_positions_change_attention_by_distance_only():
    network, _ = built(one_of(ops.Rotary(8), (6, 8)))
    token = torch.randn(8).expand(1, 6, 8)
    turned = network(token)[0]
    products = turned @ turned.T
    assert torch.allclose(products.diagonal(2), products[0, 2].expand(4), atol=1e-5)
    assert torch.allclose(turned.norm(dim=-1), token[0].norm(dim=-1), atol=1e-5)


def test_a_mixture_of_one_expert_is_that_expert():
    network, _ = built(one_of(ops.MixtureOfExperts(1, 1, 16), (6, 8)))
    x = torch.randn(2, 6, 8)
    node = network.get_submodule("node")
    gate, up, down = node.gate[0], node.up[0], node.down[0]
    expected = (torch.nn.functional.silu(x @ gate.T) * (x @ up.T)) @ down.T
    assert torch.allclose(network(x), expected, atol=1e-6)


def adaptive(shrink: int) -> Graph:
    net = NetworkBuilder("adaptive")
    words, following = (net.integers(name, 50, "sequence") for name in ("words", "next"))
    embedding = ops.AdaptiveEmbedding(50, 16, (10, 30), shrink)
    x = net.add_node("embedding", embedding, words)
    loss = ops.AdaptiveCrossEntropy(50, 16, (10, 30), shrink)
    return net.build(net.add_node("loss", loss, x, following, shares="embedding"))


@pytest.mark.parametrize("shrink", [1, 4])
def test_an_adaptive_softmax_is_a_distribution_over_the_whole_vocabulary(shrink):
    graph = adaptive(shrink)
    network, loss_of = built(graph)
    assert network.input_names == ["words", "next"]
    assert sum(p.numel() for p in network.parameters()) == graph.cost(1, sequence=4).parameters
    word = torch.tensor([[17]])
    losses = [loss_of(network(word, torch.tensor([[follower]]))) for follower in range(50)]
    assert sum(torch.exp(-loss).item() for loss in losses) == pytest.approx(1.0, rel=1e-4)


def test_every_operation_of_the_vocabulary_can_be_built_but_recorded_ones():
    known = set(torch_layers.BUILDERS) | set(torch_model.LOSS_FUNCTIONS)
    assert set(ops.OPS) - known <= {"recorded"}


def test_nodes_keep_their_names_as_modules():
    network, _ = built(zoo.build("resnet20"))
    modules = dict(network.named_modules())
    assert isinstance(modules["layer2.0.conv1"], torch.nn.Conv2d)
    assert isinstance(modules["layer3.2.add"], torch_layers.Apply)


def test_a_residual_network_learns_one_batch_by_heart():
    graph = zoo.build("resnet20")
    network, loss_of = built(graph)
    torch_data.initialise(network, graph.to_json(), seed=3)
    ((inputs, targets), _) = torch_data.batches(
        job(graph), 0, 1, network.input_names, loss_of.target_names
    )
    optimiser = torch_model.build_optimiser(
        network.parameters(), {"name": "sgd", "learning_rate": 0.02, "momentum": 0.9}
    )
    losses = []
    for _ in range(8):
        optimiser.zero_grad()
        loss = loss_of(network(*inputs), *targets)
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 3


def test_tied_layers_share_one_tensor_and_its_gradient():
    net = NetworkBuilder("tied")
    words = net.integers("words", 11, "sequence")
    x = net.embedding("embedding", words, 11, 4)
    scores = net.linear("head", x, 11, bias=False, shares="embedding")
    graph = net.build(net.cross_entropy("loss", scores, net.integers("next", 11, "sequence")))
    network, loss_of = built(graph)
    assert network.get_submodule("head").weight is network.get_submodule("embedding").weight
    assert sum(p.numel() for p in network.parameters()) == graph.cost(1, sequence=5).parameters
    words, following = torch.randint(11, (3, 5)), torch.randint(11, (3, 5))
    loss_of(network(words), following).backward()
    assert network.get_submodule("embedding").weight.grad.abs().sum() > 0


def test_sharing_weights_of_another_shape_is_refused():
    net = NetworkBuilder("untied")
    x = net.linear("first", net.image(4), 5)
    document = net.build(net.linear("second", x, 6, shares="first")).to_json()
    with pytest.raises(ValueError, match="'second' has no tensor in common with 'first'"):
        torch_model.build(document)


def test_a_weighted_sum_of_two_heads_is_the_sum_of_their_losses():
    net = NetworkBuilder("heads")
    x, label = net.image(6), net.integers("label", 3)
    losses = [
        net.cross_entropy(f"loss{head}", net.linear(f"head{head}", x, 3), label) for head in (1, 2)
    ]
    graph = net.build(net.add_node("loss", ops.WeightedSum((1.0, 0.3)), *losses))
    network, loss_of = built(graph)
    assert loss_of.target_names == ["label"]
    inputs, targets = torch.randn(4, 6), torch.tensor([0, 1, 2, 1])
    first, second = network(inputs)
    expected = torch.nn.functional.cross_entropy(first, targets)
    expected = expected + 0.3 * torch.nn.functional.cross_entropy(second, targets)
    assert loss_of([first, second], targets).item() == pytest.approx(expected.item(), rel=1e-6)


def test_an_operation_without_a_builder_is_named_with_its_node():
    document = one_of(ops.Add(), (2,), (2,)).to_json()
    document["nodes"][0]["op"] = "teleport"
    with pytest.raises(ValueError, match=r"node 'node'.*'teleport'"):
        torch_model.build(document)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("sgd", torch.optim.SGD), ("adam", torch.optim.Adam), ("adamw", torch.optim.AdamW)],
)
def test_optimisers_by_name(name, kind):
    weight = torch.nn.Parameter(torch.ones(2))
    settings = {"name": name, "learning_rate": 0.5, "momentum": 0.8, "weight_decay": 0.01}
    optimiser = torch_model.build_optimiser([weight], settings)
    assert type(optimiser) is kind
    assert optimiser.param_groups[0]["lr"] == 0.5
    assert optimiser.param_groups[0]["weight_decay"] == 0.01


def test_an_unknown_optimiser_is_refused():
    with pytest.raises(ValueError, match="unknown optimiser 'lion'"):
        torch_model.build_optimiser([], {"name": "lion", "learning_rate": 1.0})


def test_weights_and_batches_are_the_generators_numbers():
    graph = zoo.build("resnet20")
    network, loss_of = built(graph)
    torch_data.initialise(network, graph.to_json(), seed=9)
    weight = network.get_submodule("layer1.0.conv2").weight
    key = synthetic.stream_key(9, "weight/layer1.0.conv2.weight")
    scale = synthetic.initial_scale("weight", weight.shape, "conv")
    expected = [synthetic.float32(synthetic.real(key, index) * scale) for index in range(50)]
    assert weight.flatten()[:50].tolist() == expected
    assert network.get_submodule("bn1").weight.tolist() == [1.0] * 16
    names = (network.input_names, loss_of.target_names)
    second = torch_data.batches(job(graph, seed=9), 1, 2, *names)[1]
    image, label = second[0][0], second[1][0]
    first_sample = (1 * 2 + 1) * 4  # batch 1 of rank 1 of 2, four samples each
    key = synthetic.stream_key(9, "input/image")
    assert image[0].flatten()[:9].tolist() == synthetic.reals(key, first_sample * 3072, 9).tolist()
    key = synthetic.stream_key(9, "input/label")
    assert label.tolist() == synthetic.integers(key, first_sample, 4, 10).tolist()


def test_ranks_together_see_the_samples_of_one_rank_with_the_whole_batch():
    graph = zoo.build("resnet20")
    names = (["image"], ["label"])
    whole = torch_data.batches(job(graph, batch_per_rank=8), 0, 1, *names)
    halves = [torch_data.batches(job(graph), rank, 2, *names) for rank in (0, 1)]
    for number in (0, 1):
        joined = torch.cat([halves[rank][number][0][0] for rank in (0, 1)])
        assert torch.equal(joined, whole[number][0][0])


def test_digits_fit_a_graph_of_their_shape_and_no_other():
    pytest.importorskip("sklearn")
    net = NetworkBuilder("small")
    x = net.linear("fc", net.flatten("flat", net.image(1, 8, 8)), 10)
    graph = net.classifier_loss(x, 10)
    data = {"kind": "digits"}
    batches = torch_data.batches(job(graph, data=data), 0, 1, ["image"], ["label"])
    assert batches[0][0][0].shape == (4, 1, 8, 8)
    with pytest.raises(
        Exception, match=r"\(1, 8, 8\) in 10 classes, but the graph needs shape \(3, 32, 32"
    ):
        torch_data.batches(job(zoo.build("resnet20"), data=data), 0, 1, ["image"], ["label"])
