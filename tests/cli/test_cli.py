"""The command line in a process: help, errors, and files left behind."""

import json
import subprocess
import sys

import pytest
from builders import a_launch, an_outcome

from paceline.cli.main import COMMANDS
from paceline.store import Store


def paceline(*arguments, **options):
    command = [sys.executable, "-m", "paceline", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_help_with_an_example(name):
    answer = paceline(name, "--help")
    assert answer.returncode == 0, answer.stderr
    assert "Example" in answer.stdout
    assert f"paceline {name}" in answer.stdout
    assert max(map(len, answer.stdout.splitlines())) <= 100


def test_help_lists_every_command_and_where_to_start():
    answer = paceline("--help")
    for name in COMMANDS:
        assert f"  {name} " in answer.stdout
    assert "Start with: paceline demo" in answer.stdout


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["demp"], "no command named 'demp'. Did you mean demo", "paceline --help"),
        (
            ["measure", "--model", "resnet5"],
            "no model named 'resnet5'. Did you mean",
            "paceline catalog models",
        ),
        (
            ["measure", "--framework", "torch"],
            "no framework named 'torch'. Did you mean torch-",
            "",
        ),
        (["measure", "-j", "0"], "topology '0' has no processes", "-j"),
        (["measure", "-j", "two"], "invalid topology 'two'", "-j"),
        (
            ["measure", "--batch", "0"],
            "--batch must be an integer from 1 to 1,000,000,000 (got 0)",
            "from 1",
        ),
        (["measure", "--batch", "many"], "must be an integer from 1 to", "digits only"),
        (
            ["measure", "--batch", "65", "--scaling", "strong", "-j", "1x2"],
            "cannot divide a global batch of 65 evenly over 2 processes",
            "64 or 66",
        ),
        (["measure", "--bucket", "-3MiB"], "size out of range: '-3MiB'", ""),
        (["measure", "--timeout", "soon"], "'soon' is not a duration", "200us"),
        (["measure", "--launches", "0"], "--launches must be an integer from 1 to", "from 1"),
        (["measure", "--store", "/proc/nowhere/x.db"], "cannot open the store", "--store"),
        (["measure", "--resume", "nothing"], "no store at", "paceline measure"),
        (["demo", "--link", "carrier_pigeon"], "no link named 'carrier_pigeon'", ""),
        (["calibrate", "--ranks", "1"], "all-reduce needs at least 2 ranks", ""),
        (["predict", "--model", "vgg16"], "no launch of 'vgg16' on this machine", "--cluster"),
        (
            ["predict", "--trace", "googlenet_k80", "--nodes", "2"],
            "has no network between nodes",
            "--link",
        ),
        (["study", "list"], "no store at", "paceline measure"),
        (["study", "show", "abc"], "no store at", "paceline measure"),
        (["study", "export", "table.xlsx"], "unknown format of", "launches.csv"),
    ],
)
def test_a_mistake_is_one_line_with_a_hint(arguments, message, hint, tmp_path):
    answer = paceline(*arguments)
    assert answer.returncode == 2, answer.stdout + answer.stderr
    first, *rest = answer.stderr.strip().splitlines()
    assert first.startswith("error: ")
    assert message in first
    assert len(rest) == 1
    assert hint in rest[0]
    assert not list(tmp_path.glob("*.csv"))


def test_a_missing_torch_is_an_error_before_anything_is_written(tmp_path):
    environment = {"PACELINE_TORCH_PYTHON": "/nowhere/python", "PATH": "/usr/bin:/bin"}
    answer = paceline("measure", env=environment)
    assert answer.returncode == 2
    assert "$PACELINE_TORCH_PYTHON ('/nowhere/python') cannot be run" in answer.stderr
    assert "paceline frameworks install torch-ddp" in answer.stderr
    assert not list(tmp_path.iterdir())


@pytest.fixture
def recorded(tmp_path):
    path = tmp_path / "store.db"
    with Store(path) as store:
        for launch_id in ("aa1", "ab2"):
            store.start(a_launch(launch_id))
            store.finish(launch_id, an_outcome())
    return path


def test_list_and_show_print_the_same_facts_as_json(recorded):
    table = paceline("study", "list", "--launches", "--store", recorded.name)
    assert "aa1" in table.stdout
    assert max(map(len, table.stdout.splitlines())) <= 100
    listed = json.loads(
        paceline("study", "list", "--launches", "--store", recorded, "--json").stdout
    )
    assert listed["schema"] == "paceline/list/1"
    assert [launch["id"] for launch in listed["launches"]] == ["aa1", "ab2"]
    shown = json.loads(paceline("study", "show", "aa", "--store", recorded, "--json").stdout)
    assert shown["throughput_samples_per_second"] == pytest.approx(128 / 0.5)


def test_a_trace_of_a_launch_opens_as_chrome_trace(recorded, tmp_path):
    answer = paceline("study", "show", "aa1", "--store", recorded, "--trace", tmp_path / "t.json")
    assert answer.returncode == 0, answer.stderr
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]


@pytest.mark.parametrize("name", ["steps.csv", "layers.parquet"])
def test_export_writes_a_tidy_table(recorded, tmp_path, name):
    table = name.split(".")[0]
    answer = paceline("study", "export", name, "--table", table, "--store", recorded)
    assert answer.returncode == 0, answer.stderr
    if name.endswith(".csv"):
        header, *rows = (tmp_path / name).read_text().splitlines()
        assert header.split(",")[:3] == ["launch", "study", "created_at"]
        assert len(rows) == 2 * 2 * 2
    else:
        assert (tmp_path / name).read_bytes()[:4] == b"PAR1"


def test_an_export_to_an_unwritable_path_writes_nothing(recorded):
    answer = paceline("study", "export", "/proc/x.csv", "--store", recorded)
    assert answer.returncode == 2
    assert "cannot write" in answer.stderr


def test_doctor_lists_checks_with_remedies():
    findings = json.loads(paceline("doctor", "--json").stdout)["findings"]
    assert {"machine", "train with torch-ddp"} <= {finding["name"] for finding in findings}
    assert all(finding["works"] or finding["remedy"] for finding in findings)


def test_a_trace_is_replayed_among_other_numbers_of_nodes():
    words = ("--trace", "googlenet_k80", "--nodes", "1,8", "--link", "eth_10g", "--json")
    alone, eight = json.loads(paceline("predict", *words).stdout)["predictions"]
    assert alone["efficiency"] == pytest.approx(1.0)
    assert alone["exposed_communication_seconds"] == 0
    assert eight["step_seconds"] > alone["step_seconds"]
