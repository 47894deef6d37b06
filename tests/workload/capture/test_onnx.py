"""ONNX files written here node by node, and one exported by PyTorch, against plain counts."""

import builtins
import warnings

import pytest

from paceline.errors import InputError, MissingExtraError
from paceline.workload.capture import load_user_model, unknown_operations

onnx = pytest.importorskip("onnx")

import numpy as np  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402


def save(path, nodes, inputs, output, weights):
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info(n, kind, shape) for n, (kind, shape) in inputs.items()],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
        [
            numpy_helper.from_array(np.zeros(shape, dtype=np.float32), name)
            if isinstance(shape, tuple)
            else numpy_helper.from_array(np.array(shape, dtype=np.int64), name)
            for name, shape in weights.items()
        ],
    )
    model = helper.make_model(
        graph,
        opset_imports=[
            helper.make_opsetid(domain, 20 if not domain else 1) for domain in ("", "custom")
        ],
    )
    onnx.save(model, path)
    return str(path)


def cnn(path, batch="batch"):
    node = helper.make_node
    return save(
        path,
        [
            node("Conv", ["image", "w1", "b1"], ["a"], name="/stem/Conv", pads=[1] * 4),
            node("BatchNormalization", ["a", "s", "o", "m", "v"], ["b"], name="/stem/Norm"),
            node("Relu", ["b"], ["c"], name="/stem/Relu"),
            node("Conv", ["c", "w2"], ["d"], name="/grouped/Conv", group=4, strides=[2, 2]),
            node("ConvTranspose", ["d", "w3"], ["e"], name="/up/Conv"),
            node("GlobalAveragePool", ["e"], ["f"], name="/pool"),
            node("Flatten", ["f"], ["g"], name="/flatten"),
            node("Gemm", ["g", "w4", "b4"], ["scores"], name="/head", transB=1),
        ],
        {"image": (TensorProto.FLOAT, [batch, 3, 17, 17])},
        "scores",
        {
            "w1": (8, 3, 3, 3),
            "b1": (8,),
            "s": (8,),
            "o": (8,),
            "m": (8,),
            "v": (8,),
            "w2": (16, 2, 3, 3),
            "w3": (16, 4, 2, 2),
            "w4": (10, 4),
            "b4": (10,),
        },
    )


def test_a_convolutional_network(tmp_path):
    graph = load_user_model(cnn(tmp_path / "net.onnx"), ["6x3x17x17"])
    cost = graph.cost(6)
    first = 2 * 8 * 27 * 17 * 17
    grouped = 2 * 16 * 2 * 9 * 8 * 8
    up = 2 * 16 * 4 * 4 * 8 * 8
    head = 2 * 4 * 10
    trained = 8 * 27 + 8 + 16 + 16 * 18 + 16 * 16 + 50  # not mean and variance
    assert cost.parameters == trained
    assert cost.forward_flops == 6 * (first + grouped + up + head)
    assert cost.backward_flops == 6 * (first + 2 * (grouped + up + head))
    assert graph.cost(60).training_flops == 10 * cost.training_flops
    layers = {layer.name: layer for layer in cost.layers}
    assert layers["stem.Conv"].kind == "conv"
    assert layers["grouped.Conv"].output_shape == (16, 8, 8)
    assert unknown_operations(graph) == {}


def test_an_open_batch_needs_no_shape_and_a_fixed_one_is_used(tmp_path):
    assert load_user_model(cnn(tmp_path / "open.onnx")).dimensions["recorded_batch"] == 1
    fixed = load_user_model(cnn(tmp_path / "fixed.onnx", batch=3))
    assert fixed.dimensions["recorded_batch"] == 3


def attention(path, length="length"):
    node = helper.make_node
    return save(
        path,
        [
            node("Gather", ["table", "tokens"], ["x"], name="/embedding"),
            node("MatMul", ["x", "wq"], ["q"], name="/query"),
            node("Transpose", ["wk"], ["wk_t"], name="/turned", perm=[1, 0]),
            node("MatMul", ["x", "wk_t"], ["k"], name="/key"),
            node("Transpose", ["k"], ["k_t"], name="/key_t", perm=[0, 2, 1]),
            node("MatMul", ["q", "k_t"], ["s"], name="/scores"),
            node("Softmax", ["s"], ["p"], name="/softmax"),
            node("MatMul", ["p", "x"], ["y"], name="/mix"),
            node("Bernstein", ["y"], ["z"], name="/strange", domain="custom"),
            node("Add", ["y", "x"], ["out"], name="/add"),
        ],
        {"tokens": (TensorProto.INT64, ["batch", length])},
        "out",
        {"table": (50, 12), "wq": (12, 12), "wk": (12, 12)},
    )


def test_attention_embedding_and_turned_weights(tmp_path):
    graph = load_user_model(attention(tmp_path / "net.onnx", length=7))
    cost = graph.cost(4)
    projections, products = 2 * 2 * 7 * 144, 2 * 2 * 7 * 7 * 12
    assert cost.parameters == 50 * 12 + 2 * 144
    assert cost.forward_flops == 4 * (projections + products)
    assert cost.backward_flops == 2 * cost.forward_flops
    assert graph.inputs["tokens"].limit == 50
    layers = {layer.name: layer for layer in cost.layers}
    assert layers["scores"].kind == "attention"
    assert layers["scores"].weight_gradient_flops == 0
    assert layers["key"].parameters == 144
    assert unknown_operations(graph).keys() == {"custom::Bernstein"}


def test_an_open_length_asks_for_the_shape_by_name(tmp_path):
    path = attention(tmp_path / "net.onnx")
    with pytest.raises(InputError, match="dimension 'length' of input 'tokens'") as refusal:
        load_user_model(path)
    assert "--input tokens=" in refusal.value.hint
    assert load_user_model(path, ["tokens=2x7:int64"]).cost(2).parameters == 888


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (["2x3"], "has 4 dimensions, not 2"),
        (["other=2x3x17x17"], "has no input 'other'"),
        (["2x3x17x17", "2x3"], r"too many input shapes .*: 2 \(inputs: 1\)"),
        (["2x5x17x17"], "stem/Conv.*the input has 5 channels"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(tmp_path, shapes, message):
    with pytest.raises(InputError, match=message):
        load_user_model(cnn(tmp_path / "net.onnx"), shapes)


def test_an_unknown_operation_is_listed(tmp_path):
    node = helper.make_node
    path = save(
        tmp_path / "net.onnx",
        [
            node("MatMul", ["x", "w"], ["y"], name="/linear"),
            node("GridSample", ["y", "grid"], ["z"], name="/sample"),
        ],
        {
            "x": (TensorProto.FLOAT, [2, 1, 4, 4]),
            "grid": (TensorProto.FLOAT, [2, 4, 4, 2]),
        },
        "z",
        {"w": (4, 4)},
    )
    graph = load_user_model(path)
    assert list(unknown_operations(graph)) == ["onnx::GridSample"]


def test_a_file_that_is_no_onnx_is_refused(tmp_path):
    (tmp_path / "net.onnx").write_bytes(b"\xff\xff not a model")
    with pytest.raises(InputError, match="not an ONNX model"):
        load_user_model(str(tmp_path / "net.onnx"))


def test_without_the_package_its_pip_line_is_given(tmp_path, monkeypatch):
    path = cnn(tmp_path / "net.onnx")
    real_import = builtins.__import__

    def without_onnx(name, *args, **kwargs):
        if name.split(".")[0] == "onnx":
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_onnx)
    with pytest.raises(MissingExtraError) as refusal:
        load_user_model(path)
    assert refusal.value.hint == "pip install 'paceline[onnx]'"


@pytest.mark.torch
def test_exported_network_costs_the_same_as_the_module(tmp_path):
    torch = pytest.importorskip("torch")
    import paceline

    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1, bias=False),
        torch.nn.BatchNorm2d(8),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(8 * 64, 10),
    )
    path = tmp_path / "net.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            net,
            (torch.randn(2, 3, 16, 16),),
            path,
            dynamo=False,
            training=torch.onnx.TrainingMode.TRAINING,
            do_constant_folding=False,
        )
    read = load_user_model(str(path)).cost(2)
    captured = paceline.capture(net, torch.randn(2, 3, 16, 16)).cost(2)
    assert read.parameters == captured.parameters
    assert read.forward_flops == captured.forward_flops
    assert read.training_flops == captured.training_flops
    assert read.activation_bytes == pytest.approx(captured.activation_bytes, rel=0.01)
