"""The server answers its own page on loopback and nobody else."""

import json
import os
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest

from paceline.explore import server


def ask(address, path, body=b"{}", **headers):
    request = urllib.request.Request(address + path, data=body, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, answer.read(), answer.headers
    except urllib.error.HTTPError as error:
        return error.code, error.read(), error.headers


def test_an_answer_and_its_policy(explorer):
    asked = b'{"candidates": [{"nodes": 2, "batch": 16}, {"nodes": 4}]}'
    status, body, headers = ask(explorer, "api/board", asked)
    first, second = json.loads(body)["candidates"]
    assert status == 200
    assert first["rows"] and first["throughput"] and second["ratio"]
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("", None, 200),
        ("nothing", None, 404),
        ("study/nothing", None, 404),
        ("api/board", None, 405),
        ("api/board", b"{}", 200),
    ],
)
def test_every_response_has_the_security_headers(explorer, path, body, status):
    answered, _, headers = ask(explorer, path, body)
    assert answered == status
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:80"},
        {"Host": "127.0.0.1:80@evil.example"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "https://{host}"},
        {"Origin": "http://{host}/"},
        {"Host": "127.0.0.1:x@evil.example"},
        {"Host": "localhost:80, evil.example"},
    ],
)
def test_other_sites_are_refused(explorer, headers):
    host = urllib.parse.urlsplit(explorer).netloc
    headers = {name: value.replace("{host}", host) for name, value in headers.items()}
    status, body, _ = ask(explorer, "api/board", **headers)
    assert (status, json.loads(body)) == (
        403,
        {"error": "requests from other hosts or origins are refused"},
    )


@pytest.mark.parametrize("path", ["", "wrong/", "study/s", "wrong/study/s", "api/board"])
@pytest.mark.parametrize("body", [None, b"{}"])
def test_without_the_token_nothing_is_served(explorer, path, body):
    root = urllib.parse.urljoin(explorer, "/")
    status, body, headers = ask(root, path, body)
    assert status == 403
    assert "token" in json.loads(body)["error"]
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]


def as_another_user(see):
    """Whether ``see()`` is true for a process of uid 65534."""
    child = os.fork()
    if child == 0:
        code = 2
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            code = int(bool(see()))
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to act as another user")
def test_another_user_of_the_machine_cannot_read_the_explorer(explorer):
    """Neither the pages nor the token: in command lines, environments and files of others."""
    token = explorer.rstrip("/").rpartition("/")[2]
    root = urllib.parse.urljoin(explorer, "/")

    def finds_the_token():
        paths = [
            *Path("/proc").glob("[0-9]*/cmdline"),
            *Path("/proc").glob("[0-9]*/environ"),
            *Path(tempfile.gettempdir()).glob("paceline-*"),
            *Path(tempfile.gettempdir()).glob("paceline-*/*"),
        ]
        for path in paths:
            with suppress(OSError):
                if token.encode() in path.read_bytes():
                    return True
        return False

    assert as_another_user(finds_the_token) == 0
    assert as_another_user(lambda: ask(root, "study/s", None)[0] != 403) == 0
    assert as_another_user(lambda: ask(explorer, "", None)[0] == 200) == 1  # with the address


def test_the_page_for_the_browser_is_private():
    """Command lines of browsers are public: the address is in a file that only its user reads."""
    with server._redirect_to("http://127.0.0.1:1/secret/") as page:
        assert "secret" in page.read_text() and "secret" not in page.as_uri()
        assert page.parent.stat().st_mode & 0o077 == 0
    assert not page.exists()


def test_large_uploads_are_refused_before_they_are_received(explorer):
    """A text of 60 MB of small objects took 1.84 GB when it was parsed first."""
    for name, megabytes in (("config.json", 5), ("model.onnx", 20), ("model.onnx", 60)):
        content = b"[" + b"{}," * (megabytes * 350_000) + b"{}]"
        try:
            _, body, _ = ask(explorer, "api/model", content, **{"x-file-name": name})
        except urllib.error.URLError:  # the server closed the connection while we sent
            continue
        assert "larger than" in json.loads(body)["error"]
    assert ask(explorer, "api/board")[0] == 200


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("api/board", b"{", 200),
        ("api/board", b"[]", 200),
        ("api/board", b'{"candidates": [], "model": "/etc/passwd"}', 200),
        ("api/board", b'{"candidates": [{}], "pinned": -1}', 200),
        ("api/board", b" " * 30_000, 200),
        ("api/board", b"[" * 15_000, 200),
        ("api/panel/nothing", b"{}", 404),
        ("api/panel/..%2f..%2fetc", b"{}", 404),
        ("api/run", b"{}", 404),
        ("../../etc/passwd", None, 404),
    ],
)
def test_what_cannot_be_is_refused(explorer, path, body, status):
    answered, body, _ = ask(explorer, path, body)
    assert answered == status
    assert status == 404 or json.loads(body).keys() == {"error", "hint"}


def test_a_model_file_is_read_and_a_script_is_not(explorer):
    config = {"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 2, "vocab_size": 100}
    own = {"x-file-name": "config.json"}
    status, body, _ = ask(explorer, "api/model", json.dumps(config).encode(), **own)
    model = json.loads(body)["model"]
    assert status == 200 and model.startswith("upload:")
    asked = json.dumps({"model": model, "nodes": 2, "batch": 4}).encode()
    assert ask(explorer, "api/panel/published", asked)[0] == 200
    status, body, _ = ask(explorer, "api/model", b"import os", **{"x-file-name": "evil.py"})
    assert status == 200 and "expected config.json" in json.loads(body)["error"]
