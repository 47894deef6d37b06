"""Tidy tables: their columns are documented, levels of factors are among them."""

import csv
import re
from pathlib import Path

import pytest
from builders import a_launch, an_outcome, keep

from commandline import run
from paceline.store import Outcome, RankSteps, Status, Store
from paceline.store.tidy_tables import FACTOR, TABLES, tidy_rows

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "tables.md"


@pytest.fixture(autouse=True)
def _store(tmp_path):
    factors = {"batch": 64, "bucket": "1MiB"}
    outcome = an_outcome()
    profile = {
        **dict.fromkeys(["steps"], 1),
        **dict.fromkeys(
            ["step_seconds", "slowest_seconds", "exposed_seconds", "hidden_seconds"], 0.5
        ),
        "backward_end_seconds": 0.4,
        "ranks": [{"rank": 0, "phases": {"forward": 0.1, "backward": 0.3}, "last_share": 0.5}],
        "messages": [],
    }
    outcome.facts["profile"] = profile
    with Store(tmp_path / "own.db") as store:
        keep(store, [a_launch("a1", job={"position": 0, "factors": factors}, outcome=outcome)])
        plain = Outcome(Status.FINISHED, "", ranks=(RankSteps(0, (1.0, 1.0)),))
        keep(store, [a_launch("a2", study="other", world_size=1, outcome=plain)])


def rows_of(name):
    with Path(name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_every_column_is_documented():
    page = PAGE.read_text(encoding="utf-8")
    with Store(Path("own.db"), create=False) as store:
        launch = store.launch("a1")
    for name in TABLES:
        section = page.split(f"## `{name}`")[1].split("\n## ")[0]
        common = page.split("## Columns of every table")[1].split("\n## ")[0]
        told = set(re.findall(r"`(\w+)`", section + common))
        columns = set(next(tidy_rows(name, [launch])))
        assert columns <= told, f"{name}: {columns - told} are not in docs/reference/tables.md"


def test_levels_of_factors_are_columns_of_every_row():
    run("paceline study export launches.csv --store own.db")
    first, second = rows_of("launches.csv")
    assert (first[f"{FACTOR}batch"], first[f"{FACTOR}bucket"]) == ("64", "1MiB")
    assert second[f"{FACTOR}batch"] == ""
    run("paceline study export other.csv --store own.db --study other")
    assert FACTOR not in Path("other.csv").read_text()


def test_phases_of_ranks_are_rows():
    run("paceline study export phases.csv --table phases --store own.db")
    rows = rows_of("phases.csv")
    assert [(row["rank"], row["phase"], row["phase_seconds"]) for row in rows] == [
        ("0", "forward", "0.1"),
        ("0", "backward", "0.3"),
    ]


def test_parquet_has_the_same_rows():
    parquet = pytest.importorskip("pyarrow.parquet")
    run("paceline study export launches.parquet --store own.db")
    table = parquet.read_table("launches.parquet").to_pylist()
    assert table[0][f"{FACTOR}bucket"] == "1MiB"
    assert table[1]["counted_steps"] == 1


def test_every_printed_table_is_markdown_or_latex():
    assert "| --- |" in run("paceline --tables markdown study list --launches --store own.db")
    assert r"\begin{tabular}" in run("paceline --tables latex study list --store own.db")
