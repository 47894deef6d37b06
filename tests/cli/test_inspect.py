"""``paceline catalog models`` and ``paceline inspect`` on the command line."""

import json
import re

import pytest
from click.testing import CliRunner

from paceline.cli.commands.catalog import command as catalog
from paceline.cli.commands.inspect import command as inspect
from paceline.errors import PacelineError
from paceline.spec.resolve_model import batch_of, is_user_model
from paceline.workload import zoo


def run(command, *arguments):
    answer = CliRunner().invoke(command, list(arguments), catch_exceptions=True)
    if isinstance(answer.exception, PacelineError):
        raise answer.exception
    assert answer.exit_code == 0, answer.output
    return answer.output


def test_models_lists_every_network_with_its_parameters():
    text = run(catalog, "models")
    for name in zoo.names():
        assert f"\n{name} " in text
    assert "25,557,032" in text
    assert max(map(len, text.splitlines())) <= 100


def test_models_can_be_searched_and_printed_as_json():
    found = json.loads(run(catalog, "models", "llama 2", "--json"))
    assert found["schema"] == "paceline/catalog/1"
    assert [model["name"] for model in found["entries"]] == zoo.names_like("llama2")
    assert found["entries"][0]["parameters"] == 6_738_415_616
    with pytest.raises(PacelineError, match="no model name contains 'zebra'"):
        run(catalog, "models", "zebra")


@pytest.mark.parametrize("options", [(), ("--all-layers",)])
@pytest.mark.parametrize("name", ["resnet50", "gpt3_175b", "densenet121", "inception-v3", "ncf"])
def test_inspect_prints_a_table_that_fits_and_the_totals(name, options):
    text = run(inspect, name, "--batch", "4", *options)
    assert max(map(len, text.splitlines()[:-1])) <= 100
    assert f"parameters  {zoo.build(name).cost(1).parameters:,}" in text
    assert "█" in text
    assert text.splitlines()[-1].startswith("Next: paceline inspect")


def test_inspect_gives_the_same_as_json():
    found = json.loads(run(inspect, "resnet50", "--batch", "32", "--precision", "amp", "--json"))
    cost = zoo.build("resnet50").cost(32, precision="amp_fp16")
    assert found["precision"] == "amp_fp16"
    for name in ("parameters", "forward_flops", "training_flops", "activation_bytes"):
        assert found[name] == getattr(cost, name)
    assert found["gradient_bytes"] == 4 * 25_557_032
    assert len(found["layers"]) == len(cost.layers)
    first = found["layers"][0]
    assert (first["name"], first["kind"], first["output_shape"]) == (
        "conv1",
        "conv",
        [64, 112, 112],
    )
    assert sum(layer["parameters"] for layer in found["layers"]) == 25_557_032


def test_inspect_takes_the_length_of_a_sequence():
    found = json.loads(run(inspect, "mpt-7b", "--batch", "1", "--seq", "8192", "--json"))
    assert found["sequence"] == 8192
    assert found["parameters"] == 6_684_024_832


def test_inspect_takes_images_of_another_size_with_their_batch():
    found = json.loads(run(inspect, "resnet50", "--input", "8x3x160x160", "--json"))
    assert found["batch"] == 8
    assert found["layers"][0]["output_shape"] == [64, 80, 80]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["resnet5o"], "no model named 'resnet5o'. Did you mean resnet56, resnet50"),
        (["resnet50", "--batch", "0"], "batch must be at least 1 (got 0)"),
        (["gpt2", "--seq", "-4"], "sequence must be at least 1 (got -4)"),
        (["gpt2", "--seq", "4096"], "node 'positions'"),
        (["resnet50", "--precision", "fp9"], "no precision named 'fp9'. Did you mean fp8"),
        (["resnet50", "--input", "4x3x32"], "node 'conv1'"),
        (["resnet50", "--input", "4x0x32"], "'4x0x32' has a dimension below 1"),
        (["gpt2", "--input", "4x128"], "1 --input shapes for 0 float inputs"),
    ],
)
def test_mistakes_are_explained(arguments, message):
    with pytest.raises(PacelineError, match=re.escape(message)):
        run(inspect, *arguments)


def test_files_are_distinguished_from_names():
    assert is_user_model("model.py:make_model")
    assert is_user_model("nets/model.onnx")
    assert is_user_model("config.json")
    assert not is_user_model("resnet50_v1.5")
    assert not is_user_model("ViT-B/16")


def test_shapes_and_batches_are_read_as_people_write_them():
    graph = zoo.build("resnet20")
    assert batch_of(None, (), graph) == 32
    assert batch_of(None, ("16x3X224×224",), graph) == 16
    assert batch_of(2, ("8x3x4x4",), graph) == 2


def test_a_captured_model_is_inspected_at_the_batch_it_was_captured_with(tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "net.py").write_text(
        "import torch\n\n\ndef make_model():\n    return torch.nn.Linear(4, 3), torch.ones(6, 4)\n"
    )
    target = f"{tmp_path / 'net.py'}:make_model"
    found = json.loads(run(inspect, target, "--json"))
    assert (found["batch"], found["parameters"], found["forward_flops"]) == (6, 15, 2 * 6 * 4 * 3)
    assert found["unknown_operations"] == {}
