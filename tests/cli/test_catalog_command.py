"""``paceline catalog``: lists, entries with sources, and typos."""

import json

import pytest
from click.testing import CliRunner

from commandline import run
from paceline.cli.main import cli
from paceline.constants import shipped_constants
from paceline.errors import InputError, PacelineError

LISTS = ("devices", "links", "clusters", "libraries", "frameworks", "constants", "models")


def catalog(*words):
    return run(["catalog", *words])


def entries(*words):
    document = json.loads(catalog(*words, "--json"))
    assert document["schema"] == "paceline/catalog/1"
    return document["entries"]


@pytest.mark.parametrize("name", LISTS)
def test_every_list_fits_100_columns_and_suggests_a_command(name):
    lines = catalog(name).splitlines()
    assert max(map(len, lines)) <= 100
    assert lines[-1].startswith("Next: paceline ")


@pytest.mark.parametrize("name", LISTS)
def test_every_list_has_the_same_names_as_json(name):
    found = entries(name)
    assert len(found) > 5
    text = catalog(name)
    assert found[0]["name"] in text


def test_a_device_shows_the_source_of_each_number():
    text = catalog("devices", "A100-80GB")
    assert "a100_sxm_80gb" in text
    assert "312 TFLOP/s" in text
    assert "[1] github.com/stas00/ml-engineering" in text
    assert "unverified" in text
    (device,) = entries("devices", "a100")
    assert device["peak_flops_per_second"]["fp16"] == 312e12
    assert device["sources"]["memory"]["confidence"] == "read"


def test_unknown_numbers_are_shown_as_unknown():
    assert "memory                  unknown" in catalog("devices", "xeon_8480")
    assert entries("devices", "xeon_8480")[0]["memory_bytes"] is None


@pytest.mark.parametrize(
    ("kind", "name", "text"),
    [
        ("clusters", "dgx_h100", "nvlink4"),
        ("links", "10gbe", "1.25 GB/s"),
        ("frameworks", "horovod", "cycle"),
        ("libraries", "nccl", "ring/LL128"),
    ],
)
def test_clusters_links_frameworks_and_libraries_have_entries(kind, name, text):
    assert text in catalog(kind, name)
    assert len(entries(kind, name)) == 1


def test_hardware_of_a_file_is_listed_with_the_catalogue(tmp_path):
    file = tmp_path / "lab.toml"
    file.write_text('[link.lab_net]\nscope = "inter"\nbandwidth = "25gbit"\nsource = "us"\n')
    text = catalog("links", "lab_net", "--file", str(file))
    assert "3.12 GB/s" in text
    assert "[1] us" in text


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(PacelineError, match=r"named 'dgx-a10'. Did you mean dgx-a100"):
        catalog("clusters", "dgx-a10")


def test_the_list_of_constants_is_complete():
    found = entries("constants")
    assert {one["name"] for one in found} == set(shipped_constants())
    assert {one["status"] for one in found} == {"fact", "prior", "fitted"}


def test_a_prefix_and_a_status_select_constants():
    listed = catalog("constants", "libraries.gloo.efficiency", "--status", "prior")
    assert "libraries.gloo.efficiency.tcp" in listed
    assert "openmpi" not in listed


def test_a_constant_has_its_source_and_its_effect():
    shown = catalog("constants", "kernels.matrix.ceiling")
    assert "kernels.matrix.ceiling = 1.075 fraction" in shown
    assert "1,600 GEMMs" in shown
    assert "gpt3_175b" in shown
    (found,) = entries("constants", "kernels.matrix.ceiling")
    assert (found["value"], found["status"], found["factor"]) == (1.075, "fitted", 1.1)
    cases = {case["case"]["model"]: case for case in found["moves"]}
    assert cases["gpt3_175b"]["changed_step_seconds"] < cases["gpt3_175b"]["step_seconds"]
    assert "No standard case changes" in catalog("constants", "spread.model_error.here")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("constants", "kernels.matrix.ceilng"), "Did you mean kernels.matrix.ceiling"),
        (("constants", "spread", "--status", "fact"), "spread has no constants with status fact"),
        (("models", "resnt"), "no model name contains 'resnt'. Did you mean"),
        (("recipes", "--set", "ranks=2"), "--set requires a recipe"),
        (("recipes", "caffe", "--set", "nothing=2"), "no placeholder of caffe named 'nothing'"),
        (("publications", "--sources", "--family", "hkbu"), "--sources lists all sources"),
        (("publications", "--family", "hkb"), "no published family named 'hkb'"),
    ],
)
def test_mistakes_have_a_hint(words, message):
    error = CliRunner().invoke(cli, ["catalog", *words]).exception
    assert isinstance(error, PacelineError)
    assert message in error.message
    assert error.hint


def test_published_rows_are_filtered_sorted_and_exported(tmp_path):
    rows = entries("publications", "--family", "hkbu", "--where", "nodes>1", "--limit", "3")
    assert len(rows) == 3
    assert all(row["nodes"] > 1 for row in rows)
    catalog("publications", "--family", "hkbu", "--export", "hkbu.csv")
    assert (tmp_path / "hkbu.csv").read_text().count("\n") > 3
    with pytest.raises(InputError, match="is not a condition"):
        catalog("publications", "--where", "nodes")
