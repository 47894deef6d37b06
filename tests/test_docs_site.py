"""The HTML documentation: all pages are built and no link is broken."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs_site.build import build
from docs_site.checks import broken_links, misspelled

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    out = tmp_path_factory.mktemp("site")
    return out, build(out)


def test_no_link_is_broken(site):
    _, wrong = site
    assert not wrong


def test_all_pages_commands_and_figures_are_built(site):
    out, _ = site
    for page in (ROOT / "docs").rglob("*.md"):
        assert (out / page.relative_to(ROOT / "docs").with_suffix(".html")).exists()
    commands = (out / "commands.html").read_text()
    assert 'id="paceline-predict"' in commands and "--target-efficiency" in commands
    assert (out / "gallery.html").read_text().count("<svg") >= 6


def test_broken_links_are_found(tmp_path):
    (tmp_path / "a.html").write_text(
        '<a href="b.html">b</a><a href="#no">c</a><a href="#y" id="y">'
    )
    assert broken_links(tmp_path) == ["a.html: b.html", "a.html: #no"]


def test_no_word_is_misspelled():
    pytest.importorskip("codespell_lib", reason="script/setup installs codespell")
    assert not misspelled()


def test_pages_have_neighbours_and_no_style_attribute(site):
    out, _ = site
    guide = (out / "start" / "first-run.html").read_text()
    assert re.search(r'rel="prev" href="../start/install.html"', guide)
    assert re.search(r'rel="next" href="../start/commands.html"', guide)
    numbers = (out / "explanation" / "predictor.html").read_text()
    assert 'class="right"' in numbers and "style=" not in numbers.partition("</head>")[2]


def test_a_phone_shows_the_text_first_and_a_wide_screen_the_menu(site, chromium):
    out, _ = site
    for width, shown in ((400, False), (1280, True)):
        page = chromium.new_page(viewport={"width": width, "height": 900})
        page.goto((out / "explanation" / "predictor.html").as_uri())
        assert page.locator("nav a").first.is_visible() == shown
        assert page.locator("h1").bounding_box()["y"] < 300
        row = page.locator("td", has_text="precision").first
        assert row.evaluate("(cell) => cell.firstChild.getClientRects?.().length ?? 1") == 1
        page.close()


def test_the_search_finds_pages_in_a_browser(site, chromium):
    out, _ = site
    page = chromium.new_page()
    troubles = []
    page.on("console", lambda one: troubles.append(one.text) if one.type == "error" else None)
    page.goto((out / "index.html").as_uri())
    page.fill("input[name=q]", "oversubscription")
    page.keyboard.press("Enter")
    page.wait_for_selector("#found li")
    assert "why-it-scales-badly" in page.get_attribute("#found li a", "href") + page.content()
    page.goto((out / "explanation" / "predictor.html").as_uri())
    cell = "getComputedStyle(document.querySelector('td.right')).textAlign"
    assert page.evaluate(cell) == "right"
    page.close()
    assert not troubles


def test_the_help_of_the_program_builds_nothing(tmp_path):
    command = [sys.executable, ROOT / "script" / "docs-site", "--help"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "Build the documentation" in done.stdout and not list(tmp_path.iterdir())
