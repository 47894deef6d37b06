import math
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.render.svg.element import document, element, number, text
from paceline.render.svg.text_metrics import fitted, text_width


@given(st.text(), st.text(), st.text())
@pytest.mark.thorough
def test_any_text_gives_well_formed_xml_that_says_it(title, content, tip):
    mark = element("g", text(content, 1, 2, class_="label"), tip=tip, data_name=content)
    root = ElementTree.fromstring(document(10, 10, title, "d", mark))
    shown = "".join(root.itertext())
    for kept in "<>&\"'":
        assert shown.count(kept) == (title + content + tip).count(kept)


def test_coordinates_are_short_and_finite():
    assert [number(v) for v in (1.0, 1.26, -0.01, 100.04)] == ["1", "1.3", "0", "100"]
    for value in (math.nan, math.inf):
        with pytest.raises(ValueError, match="cannot be"):
            number(value)


def test_a_drawing_has_a_title_and_a_description():
    root = ElementTree.fromstring(document(100, 50, "Title", "What it shows"))
    assert root.get("role") == "img" and root.get("viewBox") == "0 0 100 50"
    assert [child.text for child in root] == ["Title", "What it shows"]


@given(st.text(max_size=80), st.floats(0, 400))
def test_fitted_text_fits(content, width):
    shown = fitted(content, width)
    assert text_width(shown) <= width + 1e-9 or shown == ""
