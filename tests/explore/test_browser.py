"""A newcomer's way through the page, in a real browser."""

import json

import pytest


def test_sliders_change_the_answer_and_the_address(opened):
    page = opened("?nodes=4&batch=32")
    before = page.inner_text("#facts div:first-child .value")
    page.focus("input[data-of=nodes]")
    for _ in range(8):
        page.keyboard.press("ArrowRight")
    page.wait_for_selector("#command:has-text('16x8')")
    page.wait_for_selector(f"#facts div:first-child .value:not(:text-is('{before}'))")
    assert "nodes=16" in page.url
    page.reload()
    page.wait_for_selector("#command:has-text('16x8')")


def test_numbers_are_exact_in_the_address_and_when_typed(opened):
    page = opened("?nodes=100&batch=100")
    assert "--batch 100 " in page.inner_text("#command")
    assert page.inner_text("#command").endswith("-j 100x8")
    assert "nodes=100" in page.url and "batch=100" in page.url
    page.fill("input[name=nodes]", "12")
    page.wait_for_selector("#command:has-text('12x8')")
    assert page.get_attribute("input[data-of=nodes]", "aria-valuetext") == "12"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("?nodes=abc", "nodes must be an integer from 1 to 65,536 (got 'abc')"),
        ("?batch=2.5", "batch must be an integer from 1 to 65,536 (got 2.5)"),
        ("?seq=abc", "seq must be an integer from 1 to 65,536 (got 'abc')"),
        ("?flops=1000", "flops must be a factor between 1/64 and 64 (got 1000)"),
        ("?link=zzz", "no link named 'zzz'"),
    ],
)
def test_a_wrong_value_in_the_address_is_an_error_and_no_other_answer(opened, query, message):
    page = opened(query, waits="#trouble:not([hidden])")
    assert message in page.inner_text("#trouble")
    assert page.url.endswith(query)
    assert page.inner_text("#title") == "No prediction" and not page.is_visible("#facts")
    page.click("#reset")
    page.wait_for_selector("#facts div")


def test_unknown_names_in_the_address_are_named_and_change_nothing(opened):
    page = opened("?action=1&id=x&length=3&elements=1&nodes=4")
    assert page.inner_text("#command").endswith("-j 4x8")
    assert page.inner_text("#unknown").endswith("ignored: action, id, length, elements")


def test_every_part_opens(opened):
    page = opened("?nodes=2&batch=32")
    for name in ("whatif", "plans", "surface", "timeline", "published"):
        page.click(f"details[data-panel={name}] summary")
        page.wait_for_selector(f"details[data-panel={name}] .panel:not([aria-busy]) > *")
    assert page.locator("details[data-panel=surface] rect").count() > 100
    assert page.locator("details[data-panel=whatif] table").count() == 2


def test_a_baseline_gives_a_ratio_and_no_verdict(opened):
    page = opened("?nodes=4")
    page.click("#keep")
    page.wait_for_selector("#verdict:has-text('4 nodes): 1 times the throughput.')")
    page.fill("input[name=model]", "resnet101")
    page.wait_for_selector("#title:has-text('resnet101')")
    assert "0." in page.inner_text("#verdict")
    assert "distinguishable" not in page.inner_text("#verdict")


def test_a_mistake_is_said_and_the_page_goes_on(opened):
    page = opened()
    page.fill("input[name=model]", "resnet5")
    page.wait_for_selector("#trouble:not([hidden])")
    assert "no model named 'resnet5'" in page.inner_text("#trouble")
    assert page.inner_text("#title") == "No prediction"
    assert not page.is_visible("#facts") and not page.is_visible("#command")
    page.fill("input[name=model]", "resnet18")
    page.wait_for_selector("#trouble[hidden]", state="attached")
    page.wait_for_selector("#title:has-text('resnet18')")
    assert page.is_visible("#facts")


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
    assert page.locator("#title").bounding_box()["y"] < 250
    assert page.is_visible("input[name=nodes]") == (width > 1000)


def test_a_keyboard_reaches_everything(opened):
    page = opened()
    seen = set()
    for _ in range(110):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.name || document.activeElement.tagName"))
    assert {"model", "cluster", "batch", "nodes", "framework", "SUMMARY", "BUTTON", "PRE"} <= seen


def test_what_is_seen_can_be_saved(opened):
    page = opened("?nodes=4")
    for kind, start in (("csv", "nodes,devices"), ("json", "{"), ("svg", "<svg")):
        with page.expect_download() as download:
            page.click(f"[data-save={kind}]")
        assert download.value.path().read_text().startswith(start)


def test_a_saved_figure_carries_its_style(opened, chromium, tmp_path):
    page = opened("?nodes=4")
    with page.expect_download() as download:
        page.click("[data-save=svg]")
    download.value.save_as(tmp_path / "scaling.svg")
    alone = chromium.new_page()
    alone.goto((tmp_path / "scaling.svg").as_uri())
    opacity = "getComputedStyle(document.querySelector('.band')).fillOpacity"
    assert alone.evaluate(opacity) == "0.16"
    alone.close()
