"""The server answers its own page on loopback and nobody else."""

import json
import urllib.error
import urllib.request

import pytest


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
    ],
)
def test_other_sites_are_refused(explorer, headers):
    status, body, _ = ask(explorer, "api/board", **headers)
    assert (status, json.loads(body)) == (
        403,
        {"error": "requests from other hosts or origins are refused"},
    )


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
