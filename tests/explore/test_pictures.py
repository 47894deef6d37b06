"""Pages look as their golden pictures do: at 1280 and 400 pixels, dark and printed."""

from pathlib import Path

import pytest
from PIL import Image

from pictures import FOLDER, TWO, difference, shots, small, write_report

MOST_DIFFERENT = 0.02
"""Largest mean difference of brightness; a column or figure that is gone makes 0.025 or more."""


def compare(name, browser, address, waits):
    for view, png in shots(browser, address, waits):
        golden = Image.open(FOLDER / f"{name}-{view}.png")
        found = difference(small(png), golden)
        assert found <= MOST_DIFFERENT, f"{name}-{view}: {found:.3f}; see tests/pictures.py"


def test_the_explorer_looks_as_it_did(chromium, explorer):
    compare("explorer", chromium, explorer + TWO, ".card:nth-child(2) .key")


def test_a_report_looks_as_it_did(chromium, tmp_path):
    compare("report", chromium, write_report(tmp_path).as_uri(), ".verdict")


@pytest.mark.parametrize("width", [80, 120, 160])
def test_tables_of_the_terminal_look_as_they_did(width):
    from paceline.render.terminal import table_lines
    from render.samples import sample_table
    from render.test_terminal import checks_table

    lines = [
        line for table in (checks_table(), sample_table()) for line in table_lines(table, width)
    ]
    golden = Path(FOLDER, f"terminal-{width}.txt").read_text()
    assert "\n".join(lines) + "\n" == golden


def test_a_missing_part_is_a_difference():
    golden = Image.open(FOLDER / "report-wide.png")
    without = golden.copy()
    without.paste(255, (0, golden.height // 2, 160, golden.height))
    assert difference(golden, golden) == 0
    assert difference(without, golden) > MOST_DIFFERENT
