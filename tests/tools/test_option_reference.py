"""The reference page of options is current."""

import option_reference


def test_the_page_of_options_is_current():
    page = option_reference.FILE.read_text(encoding="utf-8")
    assert page == option_reference.page(), "run tools/option_reference.py"
