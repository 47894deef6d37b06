"""Tables of measurements: what is used, and the reason given for each line that is not."""

import gzip

import pytest

from paceline.errors import InputError
from paceline.validation.read_rows import read_tables
from paceline.validation.reference_data import layout_table, reference_sources, reference_table
from paceline.validation.row_filters import to_csv

HEADER = (
    "id,family,framework,model,precision,device,devices,nodes,devices_per_node,"
    "global_batch,group,throughput,dp,tp,pp,cp"
)
GOOD = "a,lab,pytorch_ddp,resnet50,fp32,k80,8,1,8,256,g,400,8,1,1,1"


def read(tmp_path, *lines, name="rows.csv"):
    path = tmp_path / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return read_tables([path])


def reasons(table):
    return [problem.reason for problem in table.problems]


def test_a_good_line_becomes_a_measurement(tmp_path):
    table = read(tmp_path, HEADER, GOOD)
    (row,) = table.measurements
    assert row.configuration.devices == 8
    assert row.throughput == 400
    assert row.step_seconds == pytest.approx(256 / 400)
    assert not table.problems


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (GOOD.replace(",8,1,8,", ",eight,1,8,"), "column 'devices': 'eight' is not a number"),
        (GOOD.replace(",400,", ",fast,"), "column 'throughput': 'fast' is not a number"),
        (GOOD.replace(",400,", ",nan,"), "column 'throughput': 'nan' is not a finite number"),
        (GOOD.replace(",400,", ",-1,"), "column 'throughput': -1 is below zero"),
        (GOOD.replace(",400,", ",0,"), "column 'throughput': must be greater than 0"),
        (GOOD.replace(",400,", ",,"), "column 'throughput' is empty"),
        (GOOD.replace(",8,1,8,", ",2.5,1,8,"), "column 'devices': '2.5' is not an integer"),
        (GOOD.replace(",8,1,8,", ",8,2,8,"), "nodes x devices_per_node = 2 x 8, but devices = 8"),
        (GOOD.replace(",8,1,1,1", ",4,1,1,1"), "dp x tp x pp x cp = 4, but 8 devices"),
        (GOOD.replace(",400,", ",inf,"), "column 'throughput': 'inf' is not a finite number"),
        (GOOD.replace(",400,", ",1_000,"), "column 'throughput': '1_000' is not a number"),
        (
            GOOD.replace(",400,", ",1e308,"),
            "column 'throughput': 1e308 is implausibly large",
        ),
        (GOOD.replace(",400,", ",1e-308,"), "column 'throughput': 1e-308 is almost zero"),
        (GOOD.replace(",8,1,8,", ",0,1,8,"), "column 'devices': must be greater than 0"),
        (
            GOOD.replace(",8,1,8,", ",1e9,1e9,1,"),
            "column 'nodes': 1e9 is above the maximum of 10,000,000",
        ),
        (GOOD.replace(",8,1,8,", ",4,,8,"), "nodes x devices_per_node = 1 x 8, but devices = 4"),
        (GOOD.replace("resnet50", "res\0net"), "column 'model': not text in UTF-8"),
        ("a,lab", "2 cells for 16 columns"),
    ],
)
def test_an_invalid_line_is_rejected_with_its_reason(tmp_path, line, reason):
    table = read(tmp_path, HEADER, line, GOOD.replace("a,", "b,", 1))
    assert [row.configuration.id for row in table.measurements] == ["b"]
    (problem,) = table.problems
    assert problem.line == 2
    assert problem.reason == reason


def test_a_duplicate_id_is_rejected(tmp_path):
    table = read(tmp_path, HEADER, GOOD, GOOD)
    assert len(table.measurements) == 1
    assert reasons(table) == ["id 'a' is already used on line 2 of rows.csv"]


def test_a_missing_required_column_is_the_reason_of_every_line(tmp_path):
    header = HEADER.replace("device,", "", 1)
    table = read(tmp_path, header, GOOD.replace(",k80", ""), GOOD.replace(",k80", ""))
    assert not table.measurements
    assert reasons(table) == ["the file has no column 'device'"] * 2


def test_missing_optional_and_unknown_columns_give_remarks(tmp_path):
    table = read(tmp_path, HEADER + ",n_param", GOOD + ",1")
    assert table.measurements
    assert any("treated as unknown: framework_version" in remark for remark in table.remarks)
    assert any("'n_param'" in r and "did you mean n_params?" in r for r in table.remarks)


def test_a_single_device_needs_no_node_count(tmp_path):
    header = HEADER.replace(",nodes,devices_per_node", "")
    alone = "a,lab,torch,resnet50,fp32,k80,1,32,g,50,1,1,1,1"
    several = "b,lab,torch,resnet50,fp32,k80,2,64,g,90,2,1,1,1"
    table = read(tmp_path, header, alone, several)
    assert table.measurements[0].configuration.nodes == 1
    assert reasons(table) == ["neither 'nodes' nor 'devices_per_node' is given for several devices"]


@pytest.mark.parametrize("content", [b"", b"no,columns,here\n1,2,3\n", b"\xff\xfe\x00\x01", b"\n"])
def test_a_file_that_is_not_a_table_is_one_error(tmp_path, content):
    path = tmp_path / "odd.csv"
    path.write_bytes(content)
    with pytest.raises(InputError):
        read_tables([path])


@pytest.mark.parametrize(("separator", "name"), [(";", "semicolons"), ("\t", "tabs")])
def test_another_separator_is_named(tmp_path, separator, name):
    with pytest.raises(InputError) as caught:
        read(tmp_path, HEADER.replace(",", separator), GOOD.replace(",", separator))
    assert name in caught.value.hint


@pytest.mark.parametrize("text", ["\ufeff{}", "{}\r\n"])
def test_a_byte_order_mark_and_other_line_ends_are_read(tmp_path, text):
    lines = "\n".join([HEADER, GOOD]) + "\n"
    path = tmp_path / "rows.csv"
    path.write_bytes(text.format(lines.replace("\n", "\r\n")).encode())
    table = read_tables([path])
    assert [row.configuration.id for row in table.measurements] == ["a"]
    assert not table.problems


def test_invalid_utf8_rejects_its_line_only(tmp_path):
    path = tmp_path / "rows.csv"
    latin = GOOD.replace("resnet50", "r\xe9snet").encode("latin-1")
    path.write_bytes(b"\n".join([HEADER.encode(), latin, GOOD.replace("a,", "b,", 1).encode()]))
    table = read_tables([path])
    assert [row.configuration.id for row in table.measurements] == ["b"]
    assert reasons(table) == ["column 'model': not text in UTF-8"]


def test_an_oversized_cell_rejects_its_line(tmp_path):
    endless = GOOD.replace("resnet50", "x" * 10_000_001)
    table = read(tmp_path, HEADER, endless, GOOD)
    assert len(table.measurements) == 1
    (reason,) = reasons(table)
    assert reason.startswith("not CSV: field larger than field limit")


def test_an_unclosed_quote_rejects_the_rest_with_a_reason(tmp_path):
    table = read(tmp_path, HEADER, GOOD, '"' + GOOD.replace("a,", "b,", 1), GOOD)
    assert [row.configuration.id for row in table.measurements] == ["a"]
    (problem,) = table.problems
    assert problem.reason == "1 cells for 16 columns"
    assert len(problem.id) <= 60


def test_a_damaged_archive_is_one_error(tmp_path):
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress(f"{HEADER}\n{GOOD}\n".encode())[:-12])
    with pytest.raises(InputError, match="damaged"):
        read_tables([path])


def test_a_missing_file_is_one_error(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        read_tables([tmp_path / "none.csv"])
    with pytest.raises(InputError, match="directory"):
        read_tables([tmp_path])


def test_gzip_and_several_files_are_read_as_one_table(tmp_path):
    first = tmp_path / "one.csv.gz"
    first.write_bytes(gzip.compress(f"{HEADER}\n{GOOD}\n".encode()))
    second = tmp_path / "two.csv"
    second.write_text(f"{HEADER}\n{GOOD}\n{GOOD.replace('a,', 'b,', 1)}\n")
    table = read_tables([first, second])
    assert [row.configuration.id for row in table.measurements] == ["a", "b"]
    assert reasons(table) == ["id 'a' is already used on line 2 of one.csv.gz"]


def test_the_reference_is_complete_and_every_row_names_its_source():
    table = reference_table()
    assert len(table.measurements) == 2721
    assert not table.problems
    listed = {(source.family, source.repository) for source in reference_sources()}
    rows = [*table.measurements, *layout_table().measurements]
    assert {(row.configuration.family, row.source) for row in rows} == listed
    assert sum(source.rows for source in reference_sources()) == 2721 + 1409
    assert all(row.source_path for row in table.measurements)


def test_written_rows_are_read_back_unchanged(tmp_path):
    path = tmp_path / "out.csv"
    path.write_text(to_csv(reference_table().measurements), encoding="utf-8")
    assert read_tables([path]).measurements == reference_table().measurements
