"""Modules unlike the zoo, against numbers worked out by hand for each."""

import dataclasses
import json

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

import paceline  # noqa: E402
from paceline.errors import InputError  # noqa: E402
from paceline.workload import Graph  # noqa: E402
from paceline.workload.capture import capture_notes, unknown_operations  # noqa: E402

pytestmark = pytest.mark.torch


def costs(module, example, batch):
    return paceline.capture(module, example).cost(batch)


def assert_costs(module, example, *, parameters, forward, backward, per_sample=True):
    """``forward`` and ``backward`` are FLOP of one sample."""
    graph = paceline.capture(module, example)
    recorded = graph.dimensions["recorded_batch"]
    for batch in (recorded, 3 * recorded + 1):
        cost = graph.cost(batch)
        assert cost.parameters == parameters
        assert cost.gradient_bytes == 4 * parameters
        assert cost.forward_flops == batch * forward
        assert cost.backward_flops == batch * backward
    assert unknown_operations(graph) == {}
    return graph


class DictionaryOutputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 16)
        self.heads = nn.ModuleDict({"kind": nn.Linear(16, 3), "box": nn.Linear(16, 4)})

    def forward(self, x):
        x = self.body(x).relu()
        return {"kind": self.heads["kind"](x), "boxes": {"first": self.heads["box"](x)}}


def test_dictionary_outputs_all_get_gradients():
    forward = 2 * (8 * 16 + 16 * 3 + 16 * 4)
    no_gradient_of_data = 2 * 8 * 16
    assert_costs(
        DictionaryOutputs(),
        torch.randn(4, 8),
        parameters=8 * 16 + 16 + 16 * 3 + 3 + 16 * 4 + 4,
        forward=forward,
        backward=2 * forward - no_gradient_of_data,
    )


class TiedLanguageModel(nn.Module):
    def __init__(self, tokens=50, width=12):
        super().__init__()
        self.embedding = nn.Embedding(tokens, width)
        self.head = nn.Linear(width, tokens, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens):
        return self.head(self.embedding(tokens))


def test_tied_weights_are_counted_and_exchanged_once():
    tokens = torch.zeros(2, 7, dtype=torch.long)
    product = 2 * 7 * 12 * 50
    graph = assert_costs(
        TiedLanguageModel(), tokens, parameters=50 * 12, forward=product, backward=2 * product
    )
    assert graph.inputs["input"].limit == 50
    assert graph.node("head").shares_weights_with == "embedding"


class SharedBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = nn.Sequential(nn.Linear(10, 10), nn.ReLU())

    def forward(self, x):
        for _ in range(3):
            x = self.block(x)
        return x


def test_a_module_called_three_times_costs_three_times_and_weighs_once():
    product = 2 * 10 * 10
    graph = assert_costs(
        SharedBlock(),
        torch.randn(4, 10),
        parameters=110,
        forward=3 * product,
        backward=6 * product - product,
    )
    names = [node.name for node in graph.nodes]
    assert names == [
        "block.0",
        "block.1",
        "block.0#2",
        "block.1#2",
        "block.0#3",
        "block.1#3",
    ]


class NestedLists(nn.Module):
    def __init__(self):
        super().__init__()
        self.grid = nn.ModuleList(
            nn.ModuleList(nn.Conv2d(2, 2, 1, bias=False) for _ in range(2)) for _ in range(3)
        )

    def forward(self, images):
        return [
            [column(images[row]) for column in columns] for row, columns in enumerate(self.grid)
        ]


def test_nested_lists_of_modules_inputs_and_outputs():
    images = [torch.randn(2, 2, 4, 4) for _ in range(3)]
    one = 2 * 2 * 2 * 16
    graph = assert_costs(
        NestedLists(), (images,), parameters=6 * 4, forward=6 * one, backward=6 * one
    )
    assert list(graph.inputs) == ["input_1", "input_2", "input_3"]
    assert graph.node("grid.2.1").inputs == ("input_3",)


class ScaledLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return 0.5 * (x @ weight.t())

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        return 0.5 * (gradient @ weight), 0.5 * (gradient.t() @ x)


class CustomGradient(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 8, bias=False)
        self.weight = nn.Parameter(torch.randn(5, 8))

    def forward(self, x):
        return ScaledLinear.apply(self.first(x), self.weight)


def test_a_custom_autograd_function_is_recorded_in_both_directions():
    first, second = 2 * 6 * 8, 2 * 8 * 5
    graph = assert_costs(
        CustomGradient(),
        torch.randn(3, 6),
        parameters=6 * 8 + 5 * 8,
        forward=first + second,
        backward=first + 2 * second,
    )
    last = graph.cost(3).layers[-1]
    assert last.input_gradient_flops == 3 * second
    assert last.weight_gradient_flops == 3 * second


class HalvesUntilSmall(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, stride=2, padding=1, bias=False)

    def forward(self, x):
        while min(x.shape[-2:]) > 4:
            x = self.conv(x)
        return x.flatten(1).mean(1) if x.shape[0] > 1 else x.flatten()


def test_control_flow_on_shapes_runs_as_it_would():
    # 32 -> 16 -> 8 -> 4: three convolutions.
    sizes = [2 * 4 * 4 * 9 * side * side for side in (16, 8, 4)]
    assert_costs(
        HalvesUntilSmall(),
        torch.randn(2, 4, 32, 32),
        parameters=4 * 4 * 9,
        forward=sum(sizes),
        backward=2 * sum(sizes) - sizes[0],
    )


class OneAndThreeDimensions(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Conv1d(3, 6, 5, groups=3)
        self.volume = nn.Conv3d(1, 4, 3, dilation=2, bias=False)

    def forward(self, line, volume):
        return self.line(line).mean() + self.volume(volume).mean()


def test_convolutions_of_one_and_three_dimensions():
    line = 2 * 6 * (3 // 3) * 5 * 16  # 20 - 4 positions
    volume = 2 * 4 * 27 * 4 * 5 * 6  # each side loses 2 * (3 - 1)
    assert_costs(
        OneAndThreeDimensions(),
        (torch.randn(2, 3, 20), torch.randn(2, 1, 8, 9, 10)),
        parameters=6 * 5 + 6 + 4 * 27,
        forward=line + volume,
        backward=line + volume,
    )


def test_a_transposed_convolution_costs_by_its_input():
    net = nn.Sequential(
        nn.Conv2d(3, 8, 1, bias=False),
        nn.ConvTranspose2d(8, 4, 4, stride=2, padding=1, output_padding=1),
    )
    first = 2 * 3 * 8 * 49
    second = 2 * 8 * 4 * 16 * 49
    assert_costs(
        net,
        torch.randn(2, 3, 7, 7),
        parameters=24 + 8 * 4 * 16 + 4,
        forward=first + second,
        backward=first + 2 * second,
    )


class LastState(nn.Module):
    def __init__(self, recurrent):
        super().__init__()
        self.recurrent = recurrent

    def forward(self, x):
        states, _ = self.recurrent(x)
        return states[:, -1]


def test_a_gru_has_three_gates():
    tokens, features, hidden = 9, 5, 7
    module = LastState(nn.GRU(features, hidden, batch_first=True))
    inputs, states = 2 * 3 * hidden * features, 2 * 3 * hidden * hidden
    cost = costs(module, torch.randn(4, tokens, features), 4)
    assert cost.parameters == 3 * hidden * (features + hidden + 2)
    assert cost.forward_flops == 4 * tokens * (inputs + states)
    # The first state is data: its gradient is not needed. Weights get theirs from every token.
    weights = 4 * tokens * (inputs + states)
    assert cost.backward_flops == weights + 4 * (tokens - 1) * states


def test_an_lstm_has_four_gates_in_every_layer_and_direction():
    tokens, features, hidden = 6, 5, 8
    module = LastState(nn.LSTM(features, hidden, 2, batch_first=True, bidirectional=True))
    cost = costs(module, torch.randn(3, tokens, features), 3)
    first = 4 * hidden * (features + hidden)
    second = 4 * hidden * (2 * hidden + hidden)
    assert cost.parameters == 2 * (first + second) + 4 * 2 * 4 * hidden
    assert cost.forward_flops == 3 * tokens * 2 * 2 * (first + second)


@dataclasses.dataclass
class ModelOutput:
    loss: torch.Tensor | None
    logits: torch.Tensor
    hidden_states: tuple = ()


class DecoderLayer(nn.Module):
    def __init__(self, width, heads, kv_heads):
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = heads, kv_heads, width // heads
        self.norm = nn.RMSNorm(width)
        self.q_proj = nn.Linear(width, width, bias=False)
        self.k_proj = nn.Linear(width, kv_heads * self.head_dim, bias=False)
        self.v_proj = nn.Linear(width, kv_heads * self.head_dim, bias=False)
        self.o_proj = nn.Linear(width, width, bias=False)
        self.gate_up = nn.Linear(width, 6 * width, bias=False)
        self.down = nn.Linear(3 * width, width, bias=False)

    def forward(self, x, mask=None):
        y = self.norm(x)
        split = (*x.shape[:2], -1, self.head_dim)
        query, key, value = (
            project(y).view(split).transpose(1, 2)
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        y = F.scaled_dot_product_attention(
            query, key, value, is_causal=True, enable_gqa=self.heads != self.kv_heads
        )
        x = x + self.o_proj(y.transpose(1, 2).reshape(x.shape))
        gate, up = self.gate_up(x).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


class CausalModel(nn.Module):
    """Keyword inputs, a loss when there are labels, an output object: the library's manner."""

    def __init__(self, tokens=40, width=32, layers=2, heads=4, kv_heads=2):
        super().__init__()
        self.embed_tokens = nn.Embedding(tokens, width)
        self.layers = nn.ModuleList(DecoderLayer(width, heads, kv_heads) for _ in range(layers))
        self.lm_head = nn.Linear(width, tokens, bias=False)

    def forward(self, input_ids=None, labels=None, output_hidden_states=False):
        x, seen = self.embed_tokens(input_ids), []
        for layer in self.layers:
            x = layer(x)
            seen.append(x)
        logits = self.lm_head(x)
        loss = None
        if labels is not None:
            shifted = logits[:, :-1].flatten(0, 1)
            loss = F.cross_entropy(shifted, labels[:, 1:].flatten())
        return ModelOutput(loss, logits, tuple(seen) if output_hidden_states else ())


def test_a_model_in_the_manner_of_hugging_face():
    tokens = {name: torch.zeros(2, 10, dtype=torch.long) for name in ("input_ids", "labels")}
    width, length = 32, 10
    linear = width * width * 2 + 2 * width * width // 2 + width * 6 * width + 3 * width * width
    products = 2 * length * (2 * linear + width * 40)
    scores = 2 * 2 * 2 * length * length * width  # two layers, two products each
    graph = assert_costs(
        CausalModel(),
        tokens,
        parameters=40 * width * 2 + 2 * (linear + width),
        forward=products + scores,
        backward=2 * (products + scores),
    )
    assert list(graph.inputs) == ["input_ids", "labels"]
    layers = {layer.name: layer for layer in graph.cost(2).layers}
    assert layers["layers.1"].kind == "attention"
    assert layers["layers.1.q_proj"].parameters == width * width


class WrittenOutAttention(nn.Module):
    def forward(self, x):
        scores = torch.einsum("bqd,bkd->bqk", x, x) / 8
        return torch.einsum("bqk,bkd->bqd", scores.softmax(-1), x)


def test_products_without_weights_have_only_input_gradients():
    net = nn.Sequential(nn.Linear(16, 16, bias=False), WrittenOutAttention())
    attention = 2 * 2 * 12 * 12 * 16
    graph = assert_costs(
        net,
        torch.randn(3, 12, 16),
        parameters=256,
        forward=2 * 12 * 256 + attention,
        backward=2 * 12 * 256 + 2 * attention,
    )
    assert graph.cost(3).layers[-1].weight_gradient_flops == 0


class FirstRow(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(3, 5))

    def forward(self, x):
        return self.table[0]


def test_a_model_that_only_looks_at_a_weight_moves_nothing_forward():
    cost = costs(FirstRow(), torch.randn(2, 5), 2)
    assert cost.parameters == 15
    assert cost.forward_bytes == 0


def test_frozen_layers_have_no_gradient_and_stop_it():
    net = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 4))
    net[0].requires_grad_(False)
    cost = costs(net, torch.randn(5, 8), 5)
    assert (cost.parameters, cost.trainable_parameters) == (108, 36)
    assert cost.gradient_bytes == 36 * 4
    assert cost.backward_flops == 5 * 2 * 8 * 4


def test_parameters_that_nothing_uses_are_counted_and_noted():
    net = nn.Linear(3, 3)
    net.register_parameter("forgotten", nn.Parameter(torch.zeros(7)))
    graph = paceline.capture(net, torch.randn(2, 3))
    assert graph.cost(2).parameters == 12 + 7
    assert any("no output depends on" in note for note in capture_notes(graph))


class Checkpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 8, bias=False)
        self.second = nn.Sequential(nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False))

    def forward(self, x):
        from torch.utils.checkpoint import checkpoint

        return checkpoint(self.second, self.first(x), use_reentrant=False)


def test_a_checkpointed_layer_runs_forward_again_in_the_backward_pass():
    product = 2 * 64
    cost = costs(Checkpointed(), torch.randn(4, 8), 4)
    assert cost.forward_flops == 4 * 3 * product
    # Data need no gradient; the last product need not be repeated to have its input again.
    assert cost.backward_flops == 4 * (1 + 2 + 2 + 1) * product


def test_normalised_weights_are_work_once_per_step():
    net = torch.nn.utils.parametrizations.weight_norm(nn.Linear(16, 16))
    graph = paceline.capture(net, torch.randn(2, 16))
    assert graph.cost(1).parameters == 16 * 16 + 16 + 16
    weights = (
        graph.cost(1).forward_bytes - graph.cost(2).forward_bytes + graph.cost(1).forward_bytes
    )
    assert weights > 3 * 256 * 4  # the weight is made anew in every step, whatever the batch


class BatchWrittenIn(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 2)

    def forward(self, x):
        return self.linear(x.reshape(8, 6))


def test_a_batch_size_written_into_the_model_is_noted():
    graph = paceline.capture(BatchWrittenIn(), torch.randn(8, 2, 3))
    assert graph.cost(8).forward_flops == 8 * 2 * 6 * 2
    assert graph.cost(16).forward_flops == 16 * 2 * 6 * 2
    assert any("one batch size only" in note for note in capture_notes(graph))


class Contrastive(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(6, 4, bias=False)

    def forward(self, x):
        y = self.project(x)
        return y @ y.t()


def test_work_that_grows_with_the_square_of_the_batch_is_noted():
    graph = paceline.capture(Contrastive(), torch.randn(8, 6))
    assert graph.cost(8).forward_flops == 8 * 2 * 6 * 4 + 2 * 8 * 8 * 4
    assert any("grows faster" in note for note in capture_notes(graph))


@torch.library.custom_op("paceline_tests::scramble", mutates_args=())
def scramble(x: torch.Tensor) -> torch.Tensor:
    return x.flip(-1).clone()


@scramble.register_fake
def _(x):
    return torch.empty_like(x)


scramble.register_autograd(lambda ctx, gradient: scramble(gradient))


class Scrambles(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return scramble(self.linear(x))


def test_an_operation_that_is_not_understood_is_listed_with_its_share():
    graph = paceline.capture(Scrambles(), torch.randn(1000, 4))
    ((name, share),) = unknown_operations(graph).items()
    assert name == "paceline_tests::scramble"
    # Forward and backward each read and write 4000 numbers; so do the linear layer's operations.
    assert 0.2 < share < 0.7
    assert any("paceline_tests::scramble" in note for note in capture_notes(graph))


def test_captured_graph_round_trips_through_json():
    graph = paceline.capture(CausalModel(), {"input_ids": torch.zeros(2, 6, dtype=torch.long)})
    document = json.loads(json.dumps(graph.to_json()))
    assert Graph.from_json(document) == graph


def test_captured_bytes_are_those_of_the_operations():
    graph = paceline.capture(nn.Linear(6, 4, bias=False), torch.randn(5, 6))
    cost = graph.cost(5)
    assert cost.forward_bytes == 4 * (5 * 6 + 6 * 4 + 5 * 4)
    # Weight gradient: both activations in, one weight out. The data have none.
    assert cost.backward_bytes == 4 * (5 * 6 + 5 * 4 + 6 * 4)
    assert cost.activation_bytes == 4 * 5 * 6
    assert graph.cost(5, precision="bf16").forward_bytes == cost.forward_bytes / 2


def test_the_module_and_its_gradients_are_left_alone():
    net = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)).eval()
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    paceline.capture(net, torch.randn(4, 3))
    assert not net.training
    assert all(torch.equal(before[name], tensor) for name, tensor in net.state_dict().items())
    assert all(parameter.grad is None for parameter in net.parameters())


def test_a_module_on_the_meta_device_is_captured():
    with torch.device("meta"):
        net = nn.Linear(100_000, 100_000, bias=False)
    cost = paceline.capture(net, torch.empty(2, 100_000, device="meta")).cost(2)
    assert cost.parameters == 10**10
    assert cost.forward_flops == 2 * 2 * 10**10


def test_a_lazy_layer_is_refused_until_it_has_a_shape():
    net = nn.Sequential(nn.LazyLinear(2))
    with pytest.raises(InputError, match="Sequential has a lazy layer"):
        paceline.capture(net, torch.randn(3, 5))
    net(torch.randn(3, 5))
    assert costs(net, torch.randn(3, 5), 3).parameters == 12


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_compiled_and_scripted_modules_are_those_they_were_made_from():
    net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2))
    expected = costs(net, torch.randn(3, 4), 3).training_flops
    assert costs(torch.compile(net), torch.randn(3, 4), 3).training_flops == expected
    assert costs(torch.jit.script(net), torch.randn(3, 4), 3).training_flops == expected


def test_autocast_inside_the_model_changes_no_product():
    class Mixed(nn.Linear):
        def forward(self, x):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return super().forward(x).float()

    assert_costs(
        nn.Sequential(nn.Linear(4, 4, bias=False), Mixed(4, 4, bias=False)),
        torch.randn(2, 4),
        parameters=32,
        forward=2 * 2 * 16,
        backward=3 * 2 * 16,
    )


class ReadsData(nn.Module):
    def __init__(self, how):
        super().__init__()
        self.linear, self.how = nn.Linear(4, 4), how

    def forward(self, x):
        x = self.linear(x)
        if self.how == "branch" and x.sum() > 0:
            return x
        if self.how == "select":
            return x[x > 0]
        if self.how == "numpy":
            return torch.from_numpy(x.detach().numpy())
        return x.detach() if self.how == "detach" else x


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("branch", r"test_modules\.py:\d+: reads the value of a tensor"),
        ("select", r"test_modules\.py:\d+: aten\.nonzero.* size depends on the data"),
        ("numpy", r"test_modules\.py:\d+: .*NumPy"),
        ("detach", "no output of ReadsData depends on its trainable parameters"),
    ],
)
def test_data_dependent_model_is_rejected_with_its_line(how, message):
    with pytest.raises(InputError, match=message):
        paceline.capture(ReadsData(how), torch.empty(2, 4, device="meta"))


@pytest.mark.parametrize("how", ["branch", "select"])
def test_data_dependent_model_runs_once_on_given_data(how):
    graph = paceline.capture(ReadsData(how), torch.randn(2, 4))
    assert graph.cost(2).forward_flops == 2 * 2 * 16
    assert "one training step was run" in "".join(capture_notes(graph))


@pytest.mark.parametrize("example", [(), {}, torch.tensor(3.0), (torch.zeros(0, 3),)])
def test_inputs_without_a_batch_are_refused(example):
    with pytest.raises(InputError):
        paceline.capture(nn.Linear(3, 3), example)
