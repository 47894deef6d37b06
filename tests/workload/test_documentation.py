"""The workload documentation agrees with the code."""

import re
from pathlib import Path

import pytest

from paceline.workload import zoo
from paceline.workload.precision import PRECISIONS

pytestmark = pytest.mark.thorough

PAGE = (Path(__file__).parents[2] / "docs/reference/workloads.md").read_text(encoding="utf-8")


def test_the_page_lists_the_whole_zoo_with_its_parameters():
    table = PAGE[PAGE.index("| model | family |") :]
    rows = re.findall(r"^\| `([^`]+)` \| [^|]+ \| ([\d,]+) \|", table, flags=re.MULTILINE)
    listed = {name: int(count.replace(",", "")) for name, count in rows}
    assert listed == {name: zoo.build(name).cost(1).parameters for name in zoo.names()}


def test_the_page_lists_every_precision():
    for name in PRECISIONS:
        assert f"`{name}`" in PAGE
