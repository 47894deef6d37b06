"""The catalogue: names as people spell them, and a source for every number."""

import pytest

from paceline.errors import InputError, UnknownNameError
from paceline.hardware import Confidence, Device, UnknownQuantityError
from paceline.hardware.catalogue import catalogue, cluster, device, link, shipped

PUBLISHED_DEVICES = [
    "k80",
    "p100_sxm2",
    "v100_sxm2_16gb",
    "v100_sxm2_32gb",
    "v100_sxm3_32gb",
    "v100_sxm3_32gb_450w",
    "v100_pcie_32gb",
    "a100_sxm_40gb",
    "a100_sxm_80gb",
    "a100_pcie_40gb",
    "a100_pcie_80gb",
    "a30",
    "a40",
    "a10",
    "rtx8000",
    "rtx3090",
    "rtx4090",
    "rtx_a5000",
    "rtx_a6000",
    "rtx6000_ada",
    "l4",
    "l40",
    "l40s",
    "h100_sxm_80gb",
    "h100_pcie_80gb",
    "h100_sxm_96gb_500w",
    "h200_sxm",
    "h200_nvl",
    "b200_sxm",
    "gb200",
    "mi300x",
    "mi325x",
    "rx7900xtx",
    "ipu_gc200",
    "ipu_bow",
    "xeon_8380h",
    "xeon_8480",
]

PUBLISHED_LINKS = [
    "nvlink1",
    "nvlink2_mesh",
    "nvlink2_switch",
    "nvlink3",
    "nvlink4",
    "nvlink5",
    "xgmi_mi300x",
    "pcie3_x16",
    "pcie4_x16",
    "pcie5_x16",
    "ib_edr_100g",
    "ib_hdr_200g",
    "ib_ndr_400g",
    "opa_100g",
    "ib_100g_tcp",
    "eth_10g",
    "rdma_400g_gpu",
    "roce_1600g_node",
    "ec2_p2_8xlarge",
    "ec2_p2_16xlarge",
]


def test_devices_and_links_of_the_published_tables_keep_their_names():
    assert not set(PUBLISHED_DEVICES) - set(shipped().devices)
    assert not set(PUBLISHED_LINKS) - set(shipped().links)


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("A100-80GB", "a100_sxm_80gb"),
        ("a100", "a100_sxm_80gb"),
        ("NVIDIA A100-SXM4-40GB", "a100_sxm_40gb"),
        ("H100", "h100_sxm_80gb"),
        ("Tesla V100-SXM2-16GB", "v100_sxm2_16gb"),
        ("MI300", "mi300x"),
        ("Knights Landing", "xeon_phi_7250"),
    ],
)
def test_devices_are_found_by_common_spellings(spelling, name):
    assert device(spelling).name == name


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("dgx_a100", "dgx-a100"),
        ("DGX A100", "dgx-a100"),
        ("dgx1", "dgx-1"),
        ("p4d", "p4d.24xlarge"),
        ("p3_16xlarge", "p3.16xlarge"),
        ("iris", "iris-v100"),
    ],
)
def test_clusters_are_found_by_common_spellings(spelling, name):
    assert cluster(spelling).name == name


def test_links_are_found_by_common_spellings():
    assert link("10GbE").name == "eth_10g"
    assert link("InfiniBand EDR").name == "ib_edr_100g"
    assert link("nvlink 3").bandwidth == 300e9


def test_every_number_of_every_device_and_link_has_a_source():
    everything = [*shipped().devices.values(), *shipped().links.values()]
    for item in everything:
        for key, provenance in item.provenance.items():
            assert provenance.source, (item.name, key)
            assert provenance.date, (item.name, key)
            assert provenance.confidence is not Confidence.USER, (item.name, key)
    for item in shipped().devices.values():
        if item.peak_flops:
            assert "peak_flops" in item.provenance, item.name
        assert (item.memory_bandwidth is None) == ("memory_bandwidth" not in item.provenance)


def test_unverified_value_names_its_data_sheet():
    provenance = device("a30").provenance["peak_flops"]
    assert provenance.confidence is Confidence.UNVERIFIED
    assert "data sheet of a30" in provenance.source


def test_every_cluster_can_be_built_and_grown_where_it_has_a_network():
    for name, one in shipped().clusters.items():
        assert one.devices >= 1, name
        if one.inter is not None:
            assert one.with_nodes(3).devices == 3 * one.devices_per_node


def test_no_spelling_means_two_devices():
    names = {name: shipped().device(name).name for name in shipped().devices}
    assert all(found == name for name, found in names.items())


def test_an_unknown_device_names_the_nearest():
    with pytest.raises(UnknownNameError, match=r"no device named 'a1000'. Did you mean") as caught:
        device("a1000")
    assert "paceline catalog devices" in caught.value.hint


def test_unknown_rate_error_shows_how_to_measure_it():
    new = Device("new_part", "Maker", "gpu", {})
    assert new.memory_bandwidth is None
    with pytest.raises(UnknownQuantityError, match=r"fp32 rate of new_part") as caught:
        new.peak("fp32")
    assert "paceline calibrate" in caught.value.hint
    with pytest.raises(UnknownQuantityError, match=r"memory bandwidth of new_part") as caught:
        _ = new.known_memory_bandwidth
    assert "paceline calibrate" in caught.value.hint


def test_a_device_without_a_format_does_not_borrow_another():
    with pytest.raises(UnknownQuantityError, match=r"bf16 rate of v100_sxm2_16gb"):
        device("v100").peak("bf16")


def test_two_nodes_of_a_cluster_without_network_is_one_line_with_a_hint():
    with pytest.raises(InputError, match=r"no network between nodes") as caught:
        cluster("workstation-rtx4090").with_nodes(2)
    assert "--link" in caught.value.hint
    assert "\n" not in caught.value.message


def test_part_of_a_node_keeps_the_cards_that_serve_it():
    dgx = cluster("dgx-a100")
    assert dgx.shaped(4, 1).nics_per_node == 1
    assert dgx.shaped(4, 8).nics_per_node == 8
    assert cluster("dgx-1").shaped(2, 2).nics_per_node == 2
    with pytest.raises(InputError, match=r"has 8 devices \(requested 16\)"):
        dgx.shaped(1, 16)


def test_devices_are_whole_nodes_or_part_of_one():
    dgx = cluster("dgx-a100")
    assert (dgx.with_devices(4).nodes, dgx.with_devices(4).devices_per_node) == (1, 4)
    assert dgx.with_devices(32).nodes == 4
    with pytest.raises(InputError, match=r"12 devices cannot fill nodes of 8"):
        dgx.with_devices(12)


def test_files_named_in_the_environment_are_part_of_the_catalogue(tmp_path, monkeypatch):
    file = tmp_path / "lab.toml"
    file.write_text('[link.lab_net]\nscope = "inter"\nbandwidth = "25gbit"\n')
    monkeypatch.setenv("PACELINE_HARDWARE", str(file))
    assert catalogue().link("lab-net").bandwidth == 25e9 / 8
    assert "lab_net" not in shipped().links


@pytest.mark.parametrize(
    ("name", "mebibytes"), [("a100_sxm_80gb", 81559), ("h100", 81559), ("h200", 143771)]
)
def test_memory_is_the_size_reported_by_the_device(name, mebibytes):
    assert device(name).memory_bytes == mebibytes * 2**20
    assert "nvidia-smi" in str(device(name).provenance["memory"])


def test_memory_that_nobody_looked_up_is_that_of_the_data_sheet():
    assert device("p40").memory_bytes == 24e9
    assert "data sheet" in str(device("p40").provenance["memory"])
