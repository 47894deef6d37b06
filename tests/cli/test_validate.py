"""``paceline validate`` and ``paceline catalog publications`` on the command line."""

import csv
import gzip
import io
import json
from importlib import resources

import pytest
from click.testing import CliRunner

from paceline.cli.commands.catalog import publications as published
from paceline.cli.commands.validate import command as validate
from paceline.errors import InputError, PacelineError, UnknownNameError
from paceline.validation.reference_data import reference_table
from paceline.validation.row_filters import to_csv


def run(command, *arguments):
    answer = CliRunner().invoke(command, [str(a) for a in arguments], catch_exceptions=True)
    if isinstance(answer.exception, PacelineError):
        raise answer.exception
    assert answer.exit_code == 0, answer.output
    return answer.output


@pytest.fixture
def hkbu(tmp_path):
    rows = [r for r in reference_table().measurements if r.configuration.family == "hkbu"]
    path = tmp_path / "hkbu.csv"
    path.write_text(to_csv(rows[:40]), encoding="utf-8")
    return path


def test_scores_are_compared_with_null_models(hkbu):
    text = run(validate, "--data", hkbu, "--mode", "baseline", "--by", "method")
    assert "perfect" in text
    assert "overlap:" in text
    assert "WFBP-A2A" in text
    assert max(map(len, text.splitlines())) <= 100
    assert text.splitlines()[-1].startswith("Next: ")


def test_json_and_predictions_have_every_row(hkbu, tmp_path):
    predictions, scores = tmp_path / "p.csv", tmp_path / "s.json"
    run(validate, "--data", hkbu, "--predictions", predictions, "--json", scores)
    document = json.loads(scores.read_text())
    assert document["schema"] == "paceline/validation/2"
    assert [mode["mode"] for mode in document["modes"]] == ["baseline", "cold", "layout"]
    with predictions.open() as file:
        lines = list(csv.DictReader(file))
    assert list(lines[0]) == [
        "id",
        "mode",
        "predicted_throughput",
        "low",
        "high",
        "skipped_because",
        "predicted_memory_gb",
        "fits_probability",
        "predicted_memory_gib",
        "predicted_first_stage_memory_gib",
    ]
    assert len(lines) == 3 * 40
    for line in lines:
        assert bool(line["predicted_throughput"]) != bool(line["skipped_because"])
        if line["predicted_throughput"]:
            assert float(line["low"]) < float(line["predicted_throughput"]) < float(line["high"])


def test_bad_rows_are_named_and_the_rest_is_scored(hkbu):
    lines = hkbu.read_text().splitlines()
    columns = lines[0].split(",")
    broken = next(csv.reader([lines[3]]))
    broken[columns.index("id")] = "new"
    broken[columns.index("devices")] = "four"
    broken[columns.index("framework_version")] = ""
    hkbu.write_text("\n".join([*lines, lines[1], ",".join(broken)]) + "\n")
    text = run(validate, "--data", hkbu, "--mode", "baseline")
    assert "Skipped 2 invalid rows" in text
    assert "already used on line 2" in text
    assert "is not a number" in text
    assert "hkbu" in text


def test_json_on_standard_output_is_nothing_else(hkbu):
    answer = CliRunner().invoke(
        validate, ["--data", str(hkbu), "--mode", "baseline", "--json", "-"]
    )
    assert json.loads(answer.stdout)["held_out"] == "group"


def test_rows_of_the_reference_are_recognised_under_other_names(hkbu):
    text = hkbu.read_text().replace("hkbu-0", "mine-0").replace("hkbu,", "mine,")
    hkbu.write_text(text)
    assert "40 of 40 rows published" in run(validate, "--data", hkbu, "--mode", "baseline")


def test_a_file_without_rows_has_no_scores(hkbu):
    hkbu.write_text(hkbu.read_text().splitlines()[0] + "\n")
    assert "No rows to score" in run(validate, "--data", hkbu)


def test_unknown_devices_and_frameworks_are_predicted_from_their_baseline(hkbu):
    hkbu.write_text(hkbu.read_text().replace("v100_pcie_32gb", "abacus"))
    text = " ".join(run(validate, "--data", hkbu).split())
    assert "skipped: no device named 'abacus'" in text
    assert "predicted with: unknown rates of device 'abacus'" in text


@pytest.mark.slow
def test_a_hundred_thousand_rows_are_read_and_scored(tmp_path):
    rows = list(csv.DictReader(io.StringIO(to_csv(reference_table().measurements[:200]))))
    path = tmp_path / "many.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        for number in range(100_000):
            row = rows[number % len(rows)]
            damaged = {"throughput": "fast"} if number % 10 == 0 else {}
            writer.writerow({**row, "id": f"row-{number}", **damaged})
    text = run(validate, "--data", path, "--mode", "cold")
    assert "Skipped 10,000 invalid rows" in text
    assert "90,000 of 90,000 rows published" in text


def test_mistakes_are_explained(tmp_path, hkbu):
    with pytest.raises(InputError, match="No such file"):
        run(validate, "--data", tmp_path / "none.csv")
    with pytest.raises(UnknownNameError, match="framework"):
        run(validate, "--data", hkbu, "--by", "framwork")


def test_published_is_filtered_sorted_and_exported(tmp_path):
    out = tmp_path / "rows.csv"
    text = run(
        published,
        "--model",
        "bert_base",
        "--where",
        "nodes>1",
        "--sort",
        "-throughput",
        "--limit",
        "3",
        "--export",
        out,
    )
    assert max(map(len, text.splitlines()[1:-1])) <= 100
    with out.open() as file:
        rows = list(csv.DictReader(file))
    assert {row["model"] for row in rows} == {"bert_base"}
    assert all(int(row["nodes"]) > 1 for row in rows)
    speeds = [float(row["throughput"]) for row in rows]
    assert speeds == sorted(speeds, reverse=True)


def test_published_names_its_sources():
    text = run(published, "--sources")
    assert "Apache-2.0" in text
    document = json.loads(run(published, "--sources", "--json"))
    assert sum(source["rows"] for source in document["entries"]) == 2721 + 1409


def test_published_suggests_names():
    with pytest.raises(UnknownNameError, match="bert_base"):
        run(published, "--model", "bert_bas")


def test_memory_is_read_and_predicted_in_one_unit(tmp_path):
    # A layout without tensor parallelism, whose peak is met within a few per cent.
    shipped = resources.files("paceline") / "data" / "reference" / "layouts.csv.gz"
    heading, first, *_ = gzip.decompress(shipped.read_bytes()).decode().splitlines()
    rows, predictions = tmp_path / "rows.csv", tmp_path / "predictions.csv"
    rows.write_text(f"{heading}\n{first}\n")
    run(validate, "--data", rows, "--mode", "cold", "--predictions", predictions)
    (measured,) = csv.DictReader(rows.open())
    (predicted,) = csv.DictReader(predictions.open())
    ratio = float(predicted["predicted_memory_gb"]) / float(measured["memory_gb"])
    assert ratio == pytest.approx(1.0, abs=0.05)
