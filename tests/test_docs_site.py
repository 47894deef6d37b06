"""The HTML documentation: all pages are built and no link is broken."""

import importlib.machinery
import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def builder():
    loader = importlib.machinery.SourceFileLoader("docs_site", str(ROOT / "script" / "docs-site"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("docs_site", loader))
    loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def site(builder, tmp_path_factory):
    out = tmp_path_factory.mktemp("site")
    return out, builder.build(out)


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


def test_broken_links_are_found(builder, tmp_path):
    (tmp_path / "a.html").write_text(
        '<a href="b.html">b</a><a href="#no">c</a><a href="#y" id="y">'
    )
    assert builder.broken_links(tmp_path) == ["a.html: b.html", "a.html: #no"]
