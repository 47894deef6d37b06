"""Golden pictures: pages as they look, compared with a tolerance for fonts and small changes.

``python tests/pictures.py`` (with the project's interpreter) writes them again; look at them first.
``--docs REPORT.html`` writes the pictures of the documentation instead: the explorer, and the first
screen of the report of a demo on an idle machine.
"""

import io
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from PIL import Image

FOLDER = Path(__file__).parent / "fixtures" / "pictures"
IMAGES = Path(__file__).parents[1] / "docs" / "images"
WIDTH = 240
"""Pixels of a golden picture: enough for layout and colours, too few for a font to matter."""
BLOCK = 12
"""Pixels of the squares whose mean brightness is compared."""
VIEWS = {
    "wide": {"viewport": {"width": 1280, "height": 900}},
    "phone": {"viewport": {"width": 400, "height": 900}},
    "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
    "print": {"viewport": {"width": 800, "height": 1100}},
}
TWO = (
    "?c=model%3Dllama3_8b%26cluster%3Ddgx-h100%26nodes%3D2%26batch%3D2"
    "&c=model%3Dllama3_8b%26cluster%3Ddgx-h100%26nodes%3D2%26batch%3D2%26tp%3D4"
)

_PLAN = "model%3Dllama3_70b%26cluster%3Ddgx-h100%26nodes%3D4%26tokens%3D100B"
BOARD = (
    f"?c={_PLAN}%26framework%3Dtorch-ddp&c={_PLAN}&c={_PLAN}%26framework%3Dmegatron-lm%26tp%3D8"
    "&pinned=2&edited=2"
)


def small(png: bytes) -> Image.Image:
    """A screenshot in grey, ``WIDTH`` pixels wide."""
    picture = Image.open(io.BytesIO(png)).convert("L")
    return picture.resize((WIDTH, round(picture.height * WIDTH / picture.width)), Image.BOX)


def difference(picture: Image.Image, golden: Image.Image) -> float:
    """Mean difference of brightness over squares, from 0 to 1, with the squares of one only."""
    width, height = WIDTH // BLOCK, max(picture.height, golden.height) // BLOCK
    padded = []
    for one in (picture, golden):
        canvas = Image.new("L", (WIDTH, height * BLOCK), 128)
        canvas.paste(one, (0, 0))
        padded.append(canvas.resize((width, height), Image.BOX).tobytes())
    return sum(abs(a - b) for a, b in zip(*padded, strict=True)) / (255 * len(padded[0]))


def shots(browser: object, address: str, waits: str) -> Iterator[tuple[str, bytes]]:
    """A screenshot of the first screens of a page in each view."""
    for view, settings in VIEWS.items():
        context = browser.new_context(**settings)
        page = context.new_page()
        for _ in range(2):  # the second answer is kept, so the time that it shows is short
            page.goto(address)
            page.wait_for_selector(waits, timeout=60_000)
        if view == "print":
            page.emulate_media(media="print")
        page.wait_for_timeout(300)
        yield view, page.screenshot()
        context.close()


def write_report(folder: Path) -> Path:
    """The report of a study with fixed launches."""
    from builders import keep, keep_profile, study_launches

    import paceline as pl
    from paceline.store import Store

    with Store(folder / "own.db") as store:
        keep(store, study_launches("mine"))
        keep_profile(store)
    return pl.write_report("mine", out=folder / "mine.html", store=folder / "own.db").report


def main() -> None:
    import shutil

    from playwright.sync_api import sync_playwright

    from explore.conftest import SERVE

    docs = Path(sys.argv[2]) if sys.argv[1:2] == ["--docs"] else None
    FOLDER.mkdir(exist_ok=True)
    code = SERVE.format(arguments=["explore", "--port", "0", "--no-browser"])
    server = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=os.environ.copy()
    )
    try:
        address = re.search(r"http://\S+/", server.stdout.readline())[0]
        with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox"]
            )
            pages = {
                "explorer": (address + TWO, ".card:nth-child(2) .key"),
                "report": (write_report(Path(folder)).as_uri(), ".verdict"),
            }
            if docs is not None:
                pages = {
                    "explorer": (address + BOARD, ".card:nth-child(3) .key"),
                    "report": (docs.resolve().as_uri(), ".verdict"),
                }
            for name, (where, waits) in pages.items():
                for view, png in shots(browser, where, waits):
                    if docs is None:
                        small(png).save(FOLDER / f"{name}-{view}.png", optimize=True)
                    elif view == "wide":
                        (IMAGES / f"{name}.png").write_bytes(png)
            browser.close()
    finally:
        server.terminate()
        server.wait(30)


if __name__ == "__main__":
    main()
