"""A study walked through in a browser: served by the explorer, and from files on disk."""

import http.client
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
from builders import comparison_launches, keep, keep_profile, study_launches

from explore.conftest import SERVE
from paceline.explore.study_view import study_document
from paceline.store import Store


def ours(url, own):
    return url.startswith((own, "data:"))


HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "own.db"
    with Store(path) as opened:
        keep(opened, study_launches("mine"))
        keep(opened, comparison_launches("both", (("jax", 0.5), ("torch-ddp", 0.5))))
        keep(opened, study_launches(HOSTILE, "h", model=HOSTILE))
        keep_profile(opened)
    return path


@pytest.fixture(scope="module")
def serving(store):
    """Address of an explorer of this store."""
    words = ["explore", "--port", "0", "--no-browser", "--store", str(store)]
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE.format(arguments=words)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ.copy(),
    )
    try:
        yield re.search(r"http://127\.0\.0\.1:\d+/\S+/", process.stdout.readline())[0]
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture
def looking(chromium):
    """Opens pages; fails on errors of them and on requests to anybody else."""
    context = chromium.new_context(viewport={"width": 390, "height": 900})
    troubles = []

    def look(address, own):
        page = context.new_page()
        page.set_default_timeout(120_000)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", lambda one: ours(one.url, own) or troubles.append(one.url))
        page.goto(address)
        return page

    yield look
    context.close()
    assert not troubles


def test_from_the_curve_down_to_a_layer(serving, looking):
    page = looking(f"{serving}?study=mine&nodes=2", serving)
    page.wait_for_selector("#chart [data-tip^='measured: resnet44 b=64']", state="attached")
    page.click("form summary")
    page.click("#look")
    page.click("text=resnet44 b=64, 2 processes (phases timed)")
    page.click("td >> text=l6")
    page.wait_for_selector(".drawing svg")
    assert page.locator(".drawing svg").count() == 1
    page.wait_for_selector("text=Open in Perfetto")
    page.click("td >> text=rank 1")
    page.click("td >> text=backward")
    page.wait_for_selector("h2:has-text('Layers by backward')")
    assert page.inner_text("tbody tr:first-child td:first-child") in ("conv1", "conv2")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.go_back()
    page.wait_for_selector("h2:has-text('Phases')")


def test_equals_are_not_distinguishable_from_the_baseline(serving, looking):
    page = looking(f"{serving}study/both", serving)
    page.select_option("#baseline", label="resnet44 b=64, 1 process")
    page.wait_for_selector(".tied:has-text('not significant')")


def test_a_study_on_disk_opens_without_a_server(store, looking, tmp_path, monkeypatch):
    from click.testing import CliRunner

    from paceline.cli.commands.explore import command

    site = tmp_path / "site"
    words = ["--export", str(site), "--study", HOSTILE, "--store", str(store), "--json"]
    done = CliRunner().invoke(command, words)
    assert done.exit_code == 0, done.output
    written = json.loads(done.output)["files"]
    assert len(written) == 4 and all(Path(path).exists() for path in written)
    page = looking(site.joinpath("index.html").as_uri(), "file://")
    assert page.inner_text("#title") == HOSTILE
    page.click("td a >> nth=0")
    page.click("td a >> nth=0")
    page.wait_for_selector("h2:has-text('Ranks')")
    assert page.locator("img").count() == 0
    page.click("#way >> text=Report")
    page.wait_for_selector("h1")


def test_a_study_that_is_not_there_and_a_path_are_not_found(serving, looking):
    for name in ("nothing", "../../etc/passwd", "%2e%2e%2f%2e%2e%2fetc%2fpasswd"):
        asked = http.client.HTTPConnection(urlsplit(serving).netloc, timeout=60)
        asked.request("GET", f"{urlsplit(serving).path}study/{name}")
        answer = asked.getresponse()
        assert answer.status == 404 and b"root:" not in answer.read()


def test_no_site_can_frame_a_study(serving):
    with urlopen(f"{serving}study/mine", timeout=60) as answer:
        assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]


def test_numbers_that_are_not_there_are_null():
    document = study_document("s", study_launches("s"))
    json.dumps(document, allow_nan=False)
    assert document["launches"]["l6"]["ranks"][0]["phases"]["backward"] == pytest.approx(0.6)
    assert document["configurations"][0]["rate"] == pytest.approx(64.0)
