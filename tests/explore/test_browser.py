"""A newcomer's way through the page, in a real browser."""

import json
import re

import pytest

from explore.test_states import CLUSTER, FILES
from pictures import difference, small

TWO = "?c=model%3Dresnet50%26nodes%3D4&c=model%3Dresnet101%26nodes%3D4&edited=2"


def test_sliders_change_the_prediction_and_the_address(opened):
    page = opened("?nodes=4&batch=32")
    before = page.inner_text(".card .rate")
    page.focus("input[data-of=nodes]")
    for _ in range(8):
        page.keyboard.press("ArrowRight")
    page.wait_for_selector("#command:has-text('16x8')")
    page.wait_for_selector(f".card .rate:not(:text-is('{before}'))")
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
        ("?flops=1000", "flops must be a factor between 1/64 and 64 (got 1000)"),
        ("?link=zzz", "no link named 'zzz'"),
        ("?action=1", "no option named 'action'"),
    ],
)
def test_a_wrong_value_in_the_address_is_an_error_and_no_other_prediction(opened, query, message):
    page = opened(query, waits=".card .trouble")
    assert message in page.inner_text(".card")
    assert page.url.endswith(query)
    assert page.inner_text("#title") == "No prediction" and not page.is_visible("#details")
    page.click("#reset")
    page.wait_for_selector(".card .fit")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("?chart=pie", "chart must be linear, log or efficiency (got 'pie')"),
        ("?nodes=2&pinned=3", "pinned must be the number of a candidate (got '3')"),
        (f"{TWO}&id=x", "unknown option in the address: id"),
    ],
)
def test_a_wrong_board_in_the_address_is_an_error(opened, query, message):
    page = opened(query, waits="#trouble:not([hidden])")
    assert message in page.inner_text("#trouble")


def test_every_panel_opens(opened):
    page = opened("?model=alexnet&cluster=hkbu-v100-pcie&nodes=2&batch=32")
    for name in ("whatif", "plans", "surface", "timeline", "published"):
        page.click(f"details[data-panel={name}] summary")
        page.wait_for_selector(f"details[data-panel={name}] .panel:not([aria-busy]) > *")
    assert page.locator("details[data-panel=surface] rect").count() > 100
    assert page.locator("details[data-panel=whatif] table").count() == 2
    assert page.is_visible("details[data-panel=timeline] >> text=Open in Perfetto")
    assert page.locator("details[data-panel=plans] .plans text.label").first.text_content() == "1"
    with page.expect_download() as download:
        page.click("details[data-panel=timeline] button")
    assert json.loads(download.value.path().read_text())["traceEvents"]


def test_candidates_are_columns_with_a_ratio_to_the_pinned_one(opened):
    page = opened("?nodes=4")
    page.click("text=Duplicate")
    page.wait_for_selector(".card:nth-child(2)[aria-current]")
    page.fill("input[name=model]", "resnet101")
    page.wait_for_selector(".card:nth-child(2) h2:has-text('resnet101')")
    assert page.inner_text(".card:nth-child(2) .ratio").startswith("0.")
    assert page.locator("#chart path.band").count() == 2
    page.click(".card:nth-child(2) >> button:text-is('Pin')")
    page.wait_for_selector(".card:nth-child(2) .ratio:has-text('pinned')")
    assert page.inner_text(".card:nth-child(1) .ratio").startswith("1.")
    shared = page.url
    page.click(".card:nth-child(1) >> button:text-is('Remove')")
    page.wait_for_selector(".card:nth-child(2)", state="detached")
    page.go_back()
    page.wait_for_selector(".card:nth-child(2) .ratio:has-text('pinned')")
    assert page.url == shared
    assert page.input_value("input[name=model]") == "resnet101"


def test_the_first_job_has_published_measurements_and_a_copy_of_its_command(opened):
    page = opened()
    page.wait_for_selector("#chart [data-tip^='published']", state="attached")
    assert "?" not in page.url
    page.click("#copy")
    page.wait_for_selector("#copy:has-text('Cop')")
    assert page.inner_text("#command").startswith("paceline predict --model resnet50")


def test_a_part_of_a_step_has_one_colour_in_all_columns(opened):
    one = "model%3Dllama3_8b%26cluster%3Ddgx-h100%26nodes%3D2"
    page = opened(f"?c={one}&c={one}%26tp%3D4%26pp%3D2")
    page.wait_for_selector(".card:nth-child(2) .key")
    colours = page.evaluate(
        """[...document.querySelectorAll(".card")].map((card) => Object.fromEntries(
          [...card.querySelectorAll(".key li")].map((item) =>
            [item.textContent.replace(/ [\\d.,]+ .*/, ""),
             getComputedStyle(item, "::before").backgroundColor])))"""
    )
    shared = colours[0].keys() & colours[1].keys() - {"rest"}
    assert len(shared) > 4 and all(colours[0][name] == colours[1][name] for name in shared)


def test_empty_fields_show_the_plan_that_was_chosen(opened):
    page = opened("?model=llama3_8b&cluster=dgx-h100&nodes=2")
    assert page.get_attribute("input[name=dp]", "placeholder") == "16"
    page.focus("input[name=tp]")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("#command:has-text('--tp 2')")
    assert page.input_value("input[name=tp]") == "2"


def test_a_device_is_chosen_instead_of_a_cluster(opened):
    page = opened("?nodes=2&batch=32")
    page.fill("input[name=cluster]", "")
    page.select_option("select[name=device]", "a100_sxm_80gb")
    page.wait_for_selector("#command:has-text('--device a100_sxm_80gb')")
    page.fill("input[name=processes]", "4")
    page.wait_for_selector("#command:has-text('-j 2x4')")
    page.reload()
    page.wait_for_selector("#command:has-text('--device a100_sxm_80gb')")
    assert "--cluster" not in page.inner_text("#command")


def test_a_cluster_file_and_a_log_are_uploads(opened, tmp_path):
    (tmp_path / "ours.toml").write_bytes(CLUSTER)
    page = opened("?nodes=2&batch=32")
    page.set_input_files("#file", tmp_path / "ours.toml")
    page.wait_for_selector("#title:has-text('resnet50 on ours')")
    page.set_input_files("#file", FILES / "logs" / "nccl_all_reduce.log")
    page.wait_for_selector("#command:has-text('--allreduce-curve nccl_all_reduce.log')")
    page.select_option("select[name=allreduce_curve]", "")
    page.wait_for_selector("#command:not(:has-text('--allreduce-curve'))")


def test_a_plan_in_the_picture_becomes_a_candidate(opened):
    page = opened("?model=gpt2_xl&cluster=dgx-a100&nodes=2&batch=8")
    page.click("details[data-panel=plans] summary")
    page.wait_for_selector(".plans .marker")
    page.locator(".plans .marker").first.click(force=True)
    page.wait_for_selector(".card:nth-child(2) .rate")


def test_a_plan_that_does_not_fit_says_so_first(opened):
    page = opened("?model=llama3_70b&cluster=dgx-h100&nodes=2&framework=torch-ddp&tokens=1B")
    assert page.locator(".card .run").count() == 0
    assert page.inner_text(".card .fit").startswith("Does not fit: 1.")
    assert "with enough memory" in page.inner_text(".card .rate")
    line = page.locator(".card .stack .limit").bounding_box()
    bar = page.locator(".card .stack").first.bounding_box()
    assert (line["x"] - bar["x"]) / bar["width"] < 0.1  # capacity is a small part of the need
    assert page.locator("#chart .dashes").count() == 1


def test_the_chart_zooms_and_shows_values_at_the_pointer(opened):
    page = opened("?nodes=32")
    box = page.locator("#chart").bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.4, middle)
    page.wait_for_selector("#tip:not([hidden])")
    assert "nodes (" in page.inner_text("#tip")
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, middle)
    page.mouse.up()
    page.click("#unzoom")
    page.click("[data-mode=efficiency]")
    assert page.url.endswith("chart=efficiency")
    assert "efficiency (%)" in page.inner_text("#chart")


def test_a_mistake_is_shown_and_the_page_goes_on(opened):
    page = opened()
    page.fill("input[name=model]", "resnet5")
    page.wait_for_selector(".card .trouble")
    assert "no model named 'resnet5'" in page.inner_text(".card")
    assert page.inner_text("#title") == "No prediction"
    assert not page.is_visible("#details") and not page.is_visible("#curve")
    page.fill("input[name=model]", "resnet18")
    page.wait_for_selector(".card h2:has-text('resnet18')")
    assert page.is_visible("#details")


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
    page = opened(TWO, width=width, dark=dark)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator(".card").first.bounding_box()["y"] < 300
    assert page.is_visible("input[name=nodes]") == (width > 1000)


def test_a_keyboard_reaches_everything(opened):
    page = opened()
    seen = set()
    for _ in range(120):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.name || document.activeElement.tagName"))
    assert {"model", "cluster", "batch", "nodes", "framework", "SUMMARY", "BUTTON", "PRE"} <= seen


def test_the_board_can_be_saved(opened):
    page = opened(TWO)
    starts = (("csv", b"candidate,title,nodes"), ("json", b"["), ("svg", b"<svg"), ("png", b"\x89"))
    for kind, start in starts:
        with page.expect_download() as download:
            page.click(f"[data-save={kind}]")
        assert download.value.path().read_bytes().startswith(start)


def test_a_saved_figure_looks_as_on_the_page(opened, chromium, tmp_path):
    page = opened(TWO)
    shown = small(page.locator("#chart svg").screenshot())
    with page.expect_download() as download:
        page.click("[data-save=svg]")
    download.value.save_as(tmp_path / "scaling.svg")
    alone = chromium.new_page(viewport=page.viewport_size)
    alone.goto((tmp_path / "scaling.svg").as_uri())
    assert difference(small(alone.locator("svg").screenshot()), shown) < 0.01
    alone.close()


def test_no_crossover_is_a_sentence_and_a_long_default_is_not_cut(opened):
    page = opened("?nodes=2&global_batch=64")
    page.click("details[data-panel=surface] summary")
    page.wait_for_selector("details[data-panel=surface] >> text=No crossover: data parallelism")
    assert page.get_attribute("input[name=lora]", "placeholder") == "default"


@pytest.mark.parametrize("width", [400, 1280])
def test_names_in_the_legend_are_whole(opened, width):
    page = opened(TWO + "&c=model%3Dllama3_70b%26cluster%3Ddgx-h100%26nodes%3D2", width=width)
    page.wait_for_selector(".card:nth-child(3) .fit")
    ends = "[...document.querySelectorAll('#chart .label')].map((e) => e.getBoundingClientRect())"
    chart = page.locator("#chart svg").bounding_box()
    labels = page.evaluate(f"{ends}.map((box) => [box.right, box.bottom])")
    assert len(labels) >= 3 and max(right for right, _ in labels) <= chart["x"] + chart["width"]
    band = page.locator("#chart .band").first.bounding_box()
    assert max(bottom for _, bottom in labels) <= band["y"] + 1


def test_numbers_have_three_digits_and_options_are_not_broken(opened):
    page = opened("?model=llama3_8b&cluster=dgx-h100&nodes=2&batch=2")
    shown = page.inner_text(".card .key") + page.inner_text(".card .range")
    numbers = [text.replace(",", "") for text in re.findall(r"\d[\d,.]*\d", shown)]
    digits = [len(text.replace(".", "").strip("0")) for text in numbers]
    assert len(numbers) > 6 and max(digits) <= 3
    assert (
        page.locator("#notes .whole", has_text="--tp").first.evaluate(
            "(node) => node.getClientRects().length"
        )
        == 1
    )
