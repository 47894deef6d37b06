"""Pages of reproduced studies open with a figure, or say what a comparison would need."""

import pytest

import paceline as pl
from paceline.publications.publication import published_studies
from paceline.publications.site.site_pages import describe_agreement


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    pl.reproduce(["B", "D"], site=folder / "pages", store=folder / "own.db")
    return folder / "pages"


def test_a_study_opens_with_our_prediction_over_the_published_curve(site, chromium):
    page = chromium.new_page(viewport={"width": 1280, "height": 900})
    troubles = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    for name, first in (("sgd2018", "mean error"), ("icdcs2017", "No published number")):
        page.goto((site / f"{name}.html").as_uri())
        assert first in page.inner_text(".verdict li:first-child")
        box = page.locator(".lead figure svg").first.bounding_box()
        assert box["y"] + 100 < 900
    page.goto((site / "sgd2018.html").as_uri())
    assert "published" in page.text_content(".lead figure svg >> nth=0")
    page.close()
    assert not troubles


def test_a_study_without_numbers_says_what_a_comparison_would_need():
    for study in published_studies():
        assert bool(study.needed) != bool(study.figures), study.name


def test_mean_error_and_coverage_are_explained(site):
    found = [one.reproduction for one in pl.reproduce("B").studies]
    text = describe_agreement(found)
    covered, points = sum(p.covered for p in found[0].points), len(found[0].points)
    assert f"{covered / points:.0%} of these are" in text
    inside, total = found[0].covered_curves
    assert f"{inside} of {total} curves" in text and total == len(found[0].study.figures)
    assert "The mean error is the mean of" in (site / "index.html").read_text()
