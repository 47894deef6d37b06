"""Hints for usage errors suggest the option or value that was probably meant."""

import click
import pytest
from click.testing import CliRunner

from commandline import run
from paceline.cli.main import cli
from paceline.cli.suggestions import explain_usage_error
from paceline.errors import InputError, PacelineError
from paceline.frameworks import framework_registry as registry
from paceline.spec.resolve_cluster import cluster_of


def answer(line):
    """Message and hint of a line that is refused."""
    with pytest.raises((click.ClickException, PacelineError)) as caught:
        run(f"paceline {line}")
    error = caught.value
    if isinstance(error, PacelineError):
        return error.message, error.hint
    return explain_usage_error(error)


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("measure resnet20", "--model resnet20"),
        ("predict resnet50 --cluster dgx-1", "--model resnet50"),
        ("advise llama-3-70b --global-batch 64", "--model llama-3-70b"),
        ("whatif resnet50", "--model resnet50"),
        ("measure resnet20 --framework torch-ddp", "--model resnet20"),
        ("predict mine.onnx", "--model mine.onnx"),
        ("predict model=resnet50", "--model resnet50"),
        ("advise resnt50", "--model resnet50"),
        ("predict --model resnet50 dgx-1", "--cluster dgx-1"),
        ("predict --model resnet50 my.toml", "--cluster my.toml"),
        ("predict --model resnet50 --cluster dgx-1 2x8", "-j 2x8"),
        ("predict --model resnet50 --cluster dgx-1 fp16", "--precision fp16"),
        ("predict --model resnet50 --cluster dgx-1 torch-fsdp", "--framework torch-fsdp"),
        ("predict --model resnet50 --cluster dgx-1 100gbit", "--link 100gbit"),
    ],
)
def test_an_extra_argument_suggests_its_option(line, meant):
    message, hint = answer(line)
    assert "unexpected extra argument" in message
    assert f"did you mean {meant}?" in hint


def test_an_unknown_argument_has_the_default_hint():
    assert "--help" in answer("study list nothing-of-this-name")[1]
    assert "30d" in answer("advise --model llama3_8b --deadline 30 days")[1]


@pytest.mark.parametrize(
    ("line", "ours"),
    [
        ("predict --gpus 8", "-j NODESxGPUS"),
        ("predict --batch-size 8", "--batch"),
        ("predict --tensor-parallel 8", "--tp"),
        ("predict --optimiser adam", "--optimizer"),
        ("predict --bf16", "--precision bf16"),
        ("predict --seq-len 8192", "--seq"),
    ],
)
def test_option_names_of_other_programs_suggest_ours(line, ours):
    assert answer(line)[1].startswith(f"use {ours}")


@pytest.mark.parametrize(
    ("number", "written"),
    [("64k", "64000 or 65536"), ("1e9", "1000000000"), ("1.5k", "1500 or 1536")],
)
def test_a_count_with_a_prefix_is_suggested_in_digits(number, written):
    message, hint = answer(f"predict --model resnet50 --batch {number}")
    assert f"must be an integer from 1 to 1,000,000,000 (got '{number}')" in message
    assert hint == f"write {written}"


def test_an_invalid_number_needs_digits():
    for number in ("many", "1.2.3", "0.5", "1e400", "1e99"):
        assert answer(f"predict --model resnet50 --batch {number}")[1].endswith("digits only")


def warned(line):
    return CliRunner().invoke(cli, line.split(), catch_exceptions=False).stderr


def test_a_repeated_option_warns_which_value_is_used():
    said = warned("predict --model resnet50 --cluster dgx-1 --cluster dgx-2")
    assert said == "warning: --cluster given twice: using dgx-2, not dgx-1\n"
    assert "using vgg16" in warned("predict --model=resnet50 --model vgg16 --cluster dgx-1")


def test_repeatable_options_and_equal_values_do_not_warn():
    assert not warned("predict --model resnet50 --model resnet50 --cluster dgx-1")
    axes = "--axis link=1gbit,2gbit --axis nodes=2,4"
    assert "twice" not in warned(f"sweep --model alexnet --cluster hkbu-v100-pcie -j 2x1 {axes}")


def test_a_missing_parameter_shows_its_help_or_an_example():
    assert answer("lab up")[1] == "give --hosts: Number of hosts"
    assert answer("inspect")[1] == "example: paceline inspect resnet50 --batch 32"


def test_a_file_instead_of_a_subcommand_suggests_subcommands():
    _, hint = answer("study mine.toml")
    assert "study check mine.toml'" in hint
    assert "study run mine.toml'" in hint
    assert "delete" in answer("study delet")[1]


def test_similar_model_names_are_suggested():
    assert "Did you mean resnet" in answer("catalog models resnt")[0]


def test_a_framework_by_its_usual_name_suggests_ours():
    with pytest.raises(PacelineError) as caught:
        registry.framework("pytorch")
    assert caught.value.hint == "use torch-ddp"


def test_ethernet_is_named_as_people_write_it():
    found = cluster_of("dgx-1", {"link": "10GbE", "nodes": 2})
    assert found.inter.name == "eth_10g"
    with pytest.raises(InputError, match="'10' has no unit"):
        cluster_of("dgx-1", {"link": "10", "nodes": 2})
