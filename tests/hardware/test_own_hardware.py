"""User-defined hardware in TOML files, and errors for invalid files."""

import pytest

from paceline.errors import InputError
from paceline.hardware import Confidence
from paceline.hardware.catalogue import cluster, device, shipped
from paceline.located_toml import line_of

LAB = """\
# our lab
[device.my_gpu]
vendor = "ACME"
peak_flops = { fp32 = "15 TFLOP/s", fp16 = "60TFLOP/s" }
matrix_precisions = ["fp16"]
memory = "24GB"
memory_bandwidth = "600GB/s"
source = "data sheet 2024"

[link.my_net]
scope = "inter"
bandwidth = "25gbit"
latency = "5us"
transport = "tcp"
technology = "ethernet"

[cluster.lab]
device = "my_gpu"
devices_per_node = 4
nodes = 8
intra = "pcie4_x16"
inter = "my_net"
oversubscription = 2.0
price_per_device_hour = 1.5
"""


@pytest.fixture
def lab(tmp_path):
    file = tmp_path / "lab.toml"
    file.write_text(LAB)
    return file


def test_a_file_defines_devices_links_and_clusters(lab):
    ours = cluster(f"{lab}:lab")
    assert ours.devices == 32
    assert ours.device.peak("fp16") == 60e12
    assert ours.inter is not None
    assert ours.inter.latency_seconds == pytest.approx(5e-6)
    assert ours.intra is not None
    assert ours.intra.name == "pcie4_x16"
    assert ours.price_per_device_hour == 1.5


def test_changes_of_the_catalogue_are_reported(lab, tmp_path):
    assert shipped().changed_in(shipped().extended_with(lab)) == []
    other = tmp_path / "other.toml"
    other.write_text(LAB.replace("device.my_gpu", 'device."A100 SXM-80GB"').split("[link")[0])
    assert shipped().changed_in(shipped().extended_with(other)) == ["a100sxm80gb"]


def test_a_file_with_one_cluster_is_that_cluster(lab):
    assert cluster(str(lab)).name == "lab"


def test_numbers_of_a_file_carry_its_source(lab):
    provenance = device(f"{lab}:my_gpu").provenance["memory"]
    assert provenance.source == "data sheet 2024"
    assert provenance.confidence is Confidence.USER


def test_a_file_may_correct_the_catalogue(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('[device.a30]\nvendor = "NVIDIA"\nmemory = "24GB"\n')
    assert device(f"{file}:a30").peak_flops == {}
    assert device("a30").peak_flops


@pytest.mark.parametrize(
    ("change", "line", "message", "hint"),
    [
        (
            ("memory_bandwidth", "memory_bandwith"),
            7,
            "unknown key 'memory_bandwith'",
            "'memory_ban",
        ),
        (("fp32 =", "fp31 ="), 4, "unknown key 'fp31'", "'fp32'"),
        (('"25gbit"', '"25 parsecs"'), 12, "'25 parsecs' is not a bandwidth", "10gbit"),
        (('"24GB"', '"-24GB"'), 6, "out of range", ""),
        (('"24GB"', '"0GB"'), 6, "memory: out of range: '0GB'", "greater than 0"),
        (
            ("nodes = 8", "nodes = 0"),
            20,
            "nodes must be an integer between 1 and",
            "give an integer",
        ),
        (
            ("nodes = 8", "nodes = 2.5"),
            20,
            "nodes must be an integer between 1 and",
            "give an integer",
        ),
        (
            ('"my_net"\nover', '"my_nett"\nover'),
            22,
            "no link named 'my_nett'. Did you mean my_net",
            "",
        ),
        (('device = "my_gpu"', 'device = "my_gpv"'), 18, "no device named 'my_gpv'", "catalog"),
        (("= 2.0", "= 0.5"), 17, "oversubscription must be at least 1 (got 0.5)", "full bisection"),
        (('scope = "inter"', 'scope = "outer"'), 11, "invalid scope 'outer'", "intra, inter, host"),
        (("[link.my_net]", "[lnk.my_net]"), 10, "unknown table 'lnk'", "[link.NAME]"),
        (('["fp16"]', '"fp16"'), 5, "must be a list of strings", '["text", "text"]'),
        (("= 2.0", "= nan"), 23, "oversubscription: out of range: nan", ""),
        (("= 2.0", '= "two"'), 23, "oversubscription: expected a number, not 'two'", ""),
        (('"600GB/s"', "inf"), 7, "out of range", ""),
        (("= 1.5", "= -1"), 24, "price_per_device_hour: out of range: -1", ""),
        (('intra = "pcie4_x16"', 'intra = "eth_10g"'), 21, "eth_10g is a link of scope inter", ""),
        (('"5us"', "true"), 13, "latency: expected a number or a string, not True", ""),
    ],
)
def test_error_has_the_line_and_a_hint(tmp_path, change, line, message, hint):
    file = tmp_path / "lab.toml"
    assert change[0] in LAB
    file.write_text(LAB.replace(*change, 1))
    with pytest.raises(InputError) as caught:
        cluster(f"{file}:lab")
    assert message in caught.value.message
    assert f"line {line}" in caught.value.message
    assert hint in caught.value.hint
    assert "\n" not in caught.value.message


def test_all_errors_of_a_file_are_reported_at_once(tmp_path):
    file = tmp_path / "lab.toml"
    file.write_text(
        '[device.my_gpu]\nvendor = 5\npeak_flops = { fp31 = "15 TFLOP/s" }\nmemory = "24 apples"\n'
        '[clusters.lab]\n[cluster.lab]\nname = "x"\nprice = 3\ndevice = "my_gpu"\nnodes = 0\n'
    )
    with pytest.raises(InputError) as caught:
        cluster(f"{file}:lab")
    found = [(message.partition("lab.toml, ")[2], hint) for message, hint in caught.value.problems]
    assert found == [
        ("line 2: vendor must be a string, not 5", 'write vendor = "text"'),
        ("line 3: unknown key 'fp31' in [device.my_gpu.peak_flops]", "did you mean 'fp32'?"),
        ("line 4: memory: '24 apples' is not a size", "use a value such as 25MiB"),
        ("line 5: unknown table 'clusters'", "did you mean [cluster.NAME]?"),
        ("line 6: missing key 'devices_per_node' in [cluster.lab]", "add devices_per_node = ..."),
        (
            "line 7: unknown key 'name' in [cluster.lab]",
            "the name is part of the header: [KIND.NAME]",
        ),
        ("line 8: unknown key 'price' in [cluster.lab]", "did you mean 'price_per_device_hour'?"),
        (
            "line 10: nodes must be an integer between 1 and 1,000,000,000, not 0",
            "give an integer between 1 and 1,000,000,000",
        ),
    ]
    assert str(caught.value).count("\n") == 7


def test_names_in_clusters_are_reported_together(tmp_path):
    file = tmp_path / "lab.toml"
    file.write_text('[cluster.a]\ndevice = "none"\ndevices_per_node = 1\ninter = "pcie4_x16"\n')
    with pytest.raises(InputError) as caught:
        cluster(f"{file}:a")
    messages = [message for message, _ in caught.value.problems]
    assert "line 2: no device named 'none'" in messages[0]
    assert "line 4: pcie4_x16 is a link of scope intra" in messages[1]


def test_broken_toml_is_named_with_its_line(tmp_path):
    file = tmp_path / "lab.toml"
    file.write_text('[device.x]\nvendor = "ACME\n')
    with pytest.raises(InputError, match=r"is not valid TOML.*line 2"):
        device(f"{file}:x")


def test_missing_file_is_an_error(tmp_path):
    with pytest.raises(InputError, match=r"cannot read .*nowhere.toml: No such file"):
        cluster(f"{tmp_path}/nowhere.toml:x")


def test_a_rate_above_its_peak_is_refused(tmp_path):
    file = tmp_path / "lab.toml"
    file.write_text(
        "[device.x]\n"
        'peak_flops = { fp32 = "10TFLOP/s" }\n'
        'attainable_flops = { fp32 = "11TFLOP/s" }\n'
    )
    with pytest.raises(InputError, match=r"line 3.*exceeds its peak"):
        device(f"{file}:x")


def test_a_cluster_of_several_devices_needs_a_link_between_them(tmp_path):
    file = tmp_path / "lab.toml"
    file.write_text('[cluster.lab]\ndevice = "a30"\ndevices_per_node = 2\n')
    with pytest.raises(InputError, match=r"line 1.*no link between") as caught:
        cluster(str(file))
    assert "intra" in caught.value.hint


def test_two_clusters_in_a_file_ask_which(tmp_path):
    file = tmp_path / "lab.toml"
    entry = '[cluster.{}]\ndevice = "a30"\ndevices_per_node = 1\n'
    file.write_text(entry.format("a") + entry.format("b"))
    with pytest.raises(InputError, match=r"defines 2 clusters"):
        cluster(str(file))
    assert cluster(f"{file}:b").name == "b"


def test_lines_are_found_for_headers_keys_and_inline_keys():
    assert line_of(LAB, ("device", "my_gpu")) == 2
    assert line_of(LAB, ("link", "my_net"), "bandwidth") == 12
    assert line_of(LAB, ("device", "my_gpu", "peak_flops"), "fp16") == 4
    assert line_of('[a."b.c"]\nd = 1\n', ("a", "b.c"), "d") == 2
    assert line_of(LAB, ("cluster", "lab"), "absent") is None


def test_a_misspelt_table_is_named_where_a_file_has_no_cluster(tmp_path):
    file = tmp_path / "c.toml"
    file.write_text('[clusters.ours]\ndevice = "a100_sxm_80gb"\n')
    with pytest.raises(InputError) as caught:
        cluster(str(file))
    assert "line 1: unknown table 'clusters'" in str(caught.value)
    assert "[cluster.NAME]" in f"{caught.value} {caught.value.hint}"
    file.write_text("")
    with pytest.raises(InputError, match="defines 0 clusters"):
        cluster(str(file))
