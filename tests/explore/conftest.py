"""A running explorer, and a browser to look at it with."""

import os
import re
import subprocess
import sys

import pytest

SERVE = "import sys; sys.argv[1:] = {arguments!r}; from paceline.cli.main import main; main()"


@pytest.fixture(scope="session")
def explorer():
    """Address of an explorer of its own, ended by its id."""
    code = SERVE.format(arguments=["explore", "--port", "0", "--no-browser"])
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=os.environ.copy()
    )
    try:
        line = process.stdout.readline()
        yield re.search(r"http://127\.0\.0\.1:\d+/\S+/", line)[0]
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture
def opened(chromium, explorer):
    """Opens a page and fails on errors of it and on requests to anybody else."""
    contexts, troubles = [], []

    def open_page(query="", *, width=1440, dark=False, waits=".card .fit"):
        scheme = "dark" if dark else "light"
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, accept_downloads=True
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(120_000)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on(
            "console",
            lambda message: troubles.append(message.text) if message.type == "error" else None,
        )
        page.on(
            "request",
            lambda request: (
                None
                if request.url.startswith((explorer, "data:", "blob:"))
                else troubles.append(request.url)
            ),
        )
        page.goto(explorer + query)
        page.wait_for_selector(waits)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not troubles
