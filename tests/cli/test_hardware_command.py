"""``paceline hardware``: lists, entries with sources, and typos."""

import json

import pytest
from click.testing import CliRunner

from paceline.cli.commands.hardware import LISTS, command
from paceline.errors import PacelineError


def output(*arguments):
    result = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


@pytest.mark.parametrize("name", LISTS)
def test_every_list_fits_and_says_what_to_do_next(name):
    lines = output(name).splitlines()
    assert max(map(len, lines)) <= 100
    assert lines[-1].startswith("Next: paceline hardware")


@pytest.mark.parametrize("name", LISTS)
def test_every_list_is_json_too(name):
    document = json.loads(output(name, "--json"))
    assert document["schema"] == "paceline/hardware-list/1"
    assert len(document["entries"]) > 5


def test_a_device_shows_the_source_of_each_number():
    text = output("A100-80GB")
    assert "a100_sxm_80gb" in text
    assert "312 TFLOP/s" in text
    assert "[1] github.com/stas00/ml-engineering" in text
    assert "unverified" in text
    document = json.loads(output("a100", "--json"))
    assert document["peak_flops_per_second"]["fp16"] == 312e12
    assert document["sources"]["memory"]["confidence"] == "read"


def test_what_is_not_known_is_said_to_be():
    assert "memory                  unknown" in output("xeon_8480")
    assert json.loads(output("xeon_8480", "--json"))["memory_bytes"] is None


@pytest.mark.parametrize(
    ("name", "word"),
    [("dgx_h100", "nvlink4"), ("10gbe", "1.25 GB/s"), ("horovod", "cycle"), ("nccl", "ring/LL128")],
)
def test_clusters_links_frameworks_and_libraries_have_entries(name, word):
    assert word in output(name)
    json.loads(output(name, "--json"))


def test_a_file_of_ones_own_is_listed_with_the_rest(tmp_path):
    file = tmp_path / "lab.toml"
    file.write_text('[link.lab_net]\nscope = "inter"\nbandwidth = "25gbit"\nsource = "us"\n')
    text = output("lab_net", "--file", str(file))
    assert "3.12 GB/s" in text
    assert "[1] us" in text


def test_a_typo_names_the_nearest():
    with pytest.raises(PacelineError, match=r"named 'dgx-a10'. Did you mean dgx-a100"):
        CliRunner().invoke(command, ["dgx-a10"], catch_exceptions=False)
