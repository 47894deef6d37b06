"""A newcomer's way through the page, in a real browser."""

import json

import pytest


def test_sliders_change_the_answer_and_the_address(opened):
    page = opened("?nodes=4&batch=32")
    before = page.inner_text("#facts div:first-child .value")
    page.focus("input[name=nodes]")
    for _ in range(8):
        page.keyboard.press("ArrowRight")
    page.wait_for_selector("#command:has-text('16x8')")
    page.wait_for_selector(f"#facts div:first-child .value:not(:text-is('{before}'))")
    assert "nodes=16" in page.url
    page.reload()
    page.wait_for_selector("#command:has-text('16x8')")


def test_every_part_opens(opened):
    page = opened("?nodes=2&batch=32")
    for name in ("whatif", "plans", "surface", "timeline", "published"):
        page.click(f"details[data-panel={name}] summary")
        page.wait_for_selector(f"details[data-panel={name}] .panel:not([aria-busy]) > *")
    assert page.locator("details[data-panel=surface] rect").count() > 100
    assert page.locator("details[data-panel=whatif] table").count() == 2


def test_a_baseline_says_when_nothing_can_be_told_apart(opened):
    page = opened("?nodes=4")
    page.click("#keep")
    page.wait_for_selector("#verdict.tied:has-text('Not distinguishable')")
    page.fill("input[name=cluster]", "dgx-h100")
    page.wait_for_selector("#title:has-text('dgx-h100')")
    page.wait_for_selector("#verdict:not(.tied)")


def test_a_mistake_is_said_and_the_page_goes_on(opened):
    page = opened()
    page.fill("input[name=model]", "resnet5")
    page.wait_for_selector("#trouble:not([hidden])")
    assert "no model named 'resnet5'" in page.inner_text("#trouble")
    page.fill("input[name=model]", "resnet18")
    page.wait_for_selector("#trouble[hidden]", state="attached")
    page.wait_for_selector("#title:has-text('resnet18')")


def test_a_hostile_name_of_a_model_is_text(opened, tmp_path):
    name = "<img src=x onerror=alert(1)>"
    config = {"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 2, "vocab_size": 100}
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**config, "_name_or_path": name}))
    page = opened("?nodes=2&batch=4")
    page.set_input_files("#file", path)
    page.wait_for_selector("#title:has-text('<img')")
    assert page.locator("main img").count() == 0


@pytest.mark.parametrize(("width", "dark"), [(390, True), (390, False), (1440, True)])
def test_nothing_is_wider_than_the_window(opened, width, dark):
    page = opened("?nodes=8", width=width, dark=dark)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_keyboard_reaches_everything(opened):
    page = opened()
    seen = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.name || document.activeElement.tagName"))
    assert {"model", "cluster", "batch", "nodes", "framework", "SUMMARY", "BUTTON", "PRE"} <= seen


def test_what_is_seen_can_be_saved(opened):
    page = opened("?nodes=4")
    for kind, start in (("csv", "nodes,devices"), ("json", "{"), ("svg", "<svg")):
        with page.expect_download() as download:
            page.click(f"[data-save={kind}]")
        assert download.value.path().read_text().startswith(start)
